import { Alert, Button, Code, CopyButton, Group, List, Stack, Text, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../../../api/client";
import { decideGate, type Evaluation, type GateVerdict } from "../../../api/evaluation/evaluations";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Failure } from "../../../shared/Feedback";
import { short } from "../../../shared/format/format";
import { StateBadge } from "../../../shared/StateBadge";
import { Section } from "../parts";
import { RuleForm } from "./RuleForm";
import { sourceOf } from "./ruleChoice";
import { readRules, RulesFault, writeRule } from "./rulesText";

type Result = GateVerdict["rules"][number];
const LOOK = { pass: "succeeded", fail: "failed", invalid: "pending" };
const TITLE = {
  pass: "Pass: every rule holds",
  fail: "Fail: a rule does not hold",
  invalid: "Invalid: it cannot be decided",
};
const COLOR = { pass: "teal", fail: "red", invalid: "yellow" };

/** Rules over the report that tell CI whether the new model may ship. */
export function GateTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const kept = `steerboard.gate.${evaluation.id}`;
  const [text, setText] = useState(() => localStorage.getItem(kept) ?? usual(evaluation));
  const [fault, setFault] = useState<RulesFault | null>(null);
  const change = (next: string) => {
    setText(next);
    setFault(null);
    localStorage.setItem(kept, next);
  };
  const decide = useMutation({
    mutationFn: (rules: ReturnType<typeof readRules>) => decideGate(project, evaluation.id, rules),
  });
  const ask = () => {
    try {
      const rules = readRules(text);
      setFault(null);
      decide.mutate(rules);
    } catch (error) {
      if (!(error instanceof RulesFault)) throw error;
      decide.reset();
      setFault(error);
    }
  };
  return (
    <Stack gap="xl">
      <Section
        title="Gate"
        about="Every rule must hold for the verdict to be pass. Too few answers, too many unusable verdicts, or an unfinished evaluation make it invalid."
      >
        <Stack gap="sm">
          <RuleForm
            project={project}
            evaluation={evaluation}
            onAdd={(rule) => change(`${text.trim() ? text.trimEnd() : "rules:"}\n  ${writeRule(rule)}\n`)}
          />
          <Textarea
            label="Rules"
            description="YAML or JSON, as in the file that CI uses; kept in this browser"
            autosize
            minRows={4}
            maxRows={24}
            spellCheck={false}
            value={text}
            error={fault?.message}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
            onChange={(event) => change(event.currentTarget.value)}
          />
          <Group>
            <Button onClick={ask} loading={decide.isPending}>
              Decide
            </Button>
          </Group>
          {decide.error instanceof Problem && decide.error.places.length ? (
            <Faults problem={decide.error} />
          ) : (
            decide.error && <Failure error={decide.error} />
          )}
          {decide.data && <Decided verdict={decide.data} />}
        </Stack>
      </Section>
      <Section
        title="The same in CI"
        about="Exit codes: 0 pass, 1 fail, 2 invalid, 64 wrong usage, 69 no server."
      >
        <Stack gap="sm">
          <Command
            label="Command"
            text={`steerboard gate ${evaluation.name} --rules gate.yaml --junit gate.xml`}
          />
          <Command
            label="With curl"
            text={`curl --fail-with-body "${window.location.origin}/api/v1/projects/${project}/evaluations/${evaluation.name}/gate" \\\n  -H "Authorization: Bearer $STEERBOARD_TOKEN" -H "Content-Type: application/json" \\\n  -d '${asJson(text)}'`}
          />
        </Stack>
      </Section>
    </Stack>
  );
}

function Decided({ verdict }: { verdict: GateVerdict }) {
  const columns: Column<Result>[] = [
    {
      title: "Rule",
      cell: (one) => (
        <>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {one.text}
          </Text>
          {one.why && (
            <Text size="xs" c="dimmed">
              {one.why}
            </Text>
          )}
        </>
      ),
    },
    { title: "Value", right: true, cell: (one) => shown(one.value) },
    { title: "Bound", right: true, cell: (one) => shown(one.bound) },
    { title: "Outcome", cell: (one) => <StateBadge state={LOOK[one.outcome]} label={one.outcome} /> },
  ];
  return (
    <Stack gap="sm" role="status">
      <Alert color={COLOR[verdict.verdict]} variant="light" title={TITLE[verdict.verdict]}>
        {verdict.why.length > 0 && (
          <List size="sm">
            {verdict.why.map((why) => (
              <List.Item key={why}>{why}</List.Item>
            ))}
          </List>
        )}
      </Alert>
      <DataTable
        label="Rules with their values"
        rows={verdict.rules}
        columns={columns}
        keyOf={(one) => JSON.stringify(one.rule)}
      />
    </Stack>
  );
}

/** What is wrong with the rules, by rule and field: `rules.1.metric` is the second rule's metric. */
function Faults({ problem }: { problem: Problem }) {
  return (
    <Alert color="red" variant="light" title={problem.message} role="alert">
      <List size="sm">
        {problem.places.map(({ location, message }) => {
          const [, at, field] = /rules\.(\d+)\.?(.*)$/.exec(location) ?? [];
          return (
            <List.Item key={location}>
              <Text span size="sm" fw={600}>
                {at === undefined ? location : `Rule ${Number(at) + 1}${field ? `, ${field}` : ""}`}
              </Text>
              : {message}
            </List.Item>
          );
        })}
      </List>
    </Alert>
  );
}

function Command({ label, text }: { label: string; text: string }) {
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text size="sm" fw={550}>
          {label}
        </Text>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy: ${label}`}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Code block className="scroll-x" tabIndex={0} role="group" aria-label={label}>
        {text}
      </Code>
    </div>
  );
}

function shown(value: number | boolean | null): string {
  return value === null ? "–" : typeof value === "boolean" ? String(value) : short(value);
}

function asJson(text: string): string {
  try {
    return JSON.stringify(readRules(text)).replaceAll("'", "'\\''");
  } catch {
    return '{"rules": []}';
  }
}

/** A starting point: the last entrant wins against the first, by any source that has judged. */
function usual(evaluation: Evaluation): string {
  const [first, ...others] = evaluation.entrants;
  const last = others.at(-1);
  if (!first || !last) return "rules:\n";
  const rule = {
    metric: "win_rate",
    entrant: last.name,
    vs: first.name,
    by: sourceOf(evaluation),
    stat: "ci_low",
    op: ">",
    value: 0.5,
  };
  return `rules:\n  ${writeRule(rule)}\n`;
}
