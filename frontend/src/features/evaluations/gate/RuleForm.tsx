import { Button, Group, NumberInput, Select } from "@mantine/core";
import { useState } from "react";
import type { Evaluation } from "../../../api/evaluation/evaluations";

interface Metric {
  name: string;
  label: string;
  by: readonly string[];
  entrant: boolean;
  vs: boolean;
  stats: readonly string[];
  value: number;
}

const EVERYBODY = ["judge", "human", "reward"] as const;
const ESTIMATE = ["ci_low", "value", "ci_high", "n"] as const;
const PAIR = [...ESTIMATE, "p_holm", "p"] as const;

/** The metrics that most gates need; the text takes all of them. */
const METRICS: readonly Metric[] = [
  { name: "win_rate", label: "win rate", by: EVERYBODY, entrant: true, vs: true, stats: PAIR, value: 0.5 },
  { name: "mean_score", label: "mean score", by: EVERYBODY, entrant: true, vs: true, stats: PAIR, value: 0 },
  {
    name: "length_ratio",
    label: "length ratio",
    by: [],
    entrant: true,
    vs: true,
    stats: ESTIMATE,
    value: 1.5,
  },
  {
    name: "condition_gain",
    label: "gain by the score, nats",
    by: [],
    entrant: true,
    vs: false,
    stats: ESTIMATE,
    value: 0,
  },
  {
    name: "reward_hacking",
    label: "reward hacking",
    by: [],
    entrant: true,
    vs: true,
    stats: ["value"],
    value: 0,
  },
  {
    name: "unparsed_rate",
    label: "share of unusable verdicts",
    by: ["judge"],
    entrant: false,
    vs: false,
    stats: ["value"],
    value: 0.05,
  },
  {
    name: "accuracy",
    label: "pair accuracy",
    by: ["reward"],
    entrant: false,
    vs: false,
    stats: ESTIMATE,
    value: 0.6,
  },
  {
    name: "seen_share",
    label: "share of prompts seen in training",
    by: [],
    entrant: false,
    vs: false,
    stats: ["value"],
    value: 0.05,
  },
  {
    name: "responses_missing",
    label: "missing answers",
    by: [],
    entrant: true,
    vs: false,
    stats: ["value"],
    value: 0,
  },
];
const SMALLER = ["length_ratio", "unparsed_rate", "seen_share", "responses_missing"];

/** One rule, made by choosing. */
export function RuleForm({
  evaluation,
  onAdd,
}: {
  evaluation: Evaluation;
  onAdd: (rule: Record<string, unknown>) => void;
}) {
  const names = evaluation.entrants.map((one) => one.name);
  const [name, setName] = useState("win_rate");
  const metric = METRICS.find((one) => one.name === name)!;
  const [entrant, setEntrant] = useState<string | null>(names.at(-1) ?? null);
  const [vs, setVs] = useState<string | null>(names[0] ?? null);
  const [by, setBy] = useState<string>("judge");
  const [stat, setStat] = useState<string>("ci_low");
  const [op, setOp] = useState(">");
  const [value, setValue] = useState<number | string>(0.5);
  const choose = (next: string) => {
    const found = METRICS.find((one) => one.name === next)!;
    setName(next);
    setBy(found.by.includes(by) ? by : (found.by[0] ?? ""));
    setStat(found.stats[0]!);
    setOp(next === "reward_hacking" ? "==" : SMALLER.includes(next) ? "<=" : ">");
    setValue(found.value);
  };
  const add = () =>
    onAdd({
      metric: name,
      entrant: metric.entrant ? entrant : null,
      vs: metric.vs ? vs : null,
      by: metric.by.length ? by : null,
      stat: metric.stats.length > 1 ? stat : null,
      op,
      value: name === "reward_hacking" ? false : Number(value),
    });
  const complete = (!metric.entrant || entrant) && (!metric.vs || (vs && vs !== entrant)) && value !== "";
  return (
    <Group gap="xs" align="flex-end" role="group" aria-label="Add a rule">
      <Select
        label="Metric"
        size="xs"
        w={190}
        allowDeselect={false}
        data={METRICS.map((one) => ({ value: one.name, label: one.label }))}
        value={name}
        onChange={(next) => next && choose(next)}
      />
      {metric.entrant && (
        <Select
          label="of"
          size="xs"
          w={150}
          allowDeselect={false}
          data={names}
          value={entrant}
          onChange={setEntrant}
        />
      )}
      {metric.vs && (
        <Select
          label="against"
          size="xs"
          w={150}
          allowDeselect={false}
          data={names}
          value={vs}
          onChange={setVs}
        />
      )}
      {metric.by.length > 1 && (
        <Select
          label="by"
          size="xs"
          w={110}
          allowDeselect={false}
          data={[
            { value: "judge", label: "judges" },
            { value: "human", label: "people" },
            { value: "reward", label: "rewards" },
          ]}
          value={by}
          onChange={(next) => next && setBy(next)}
        />
      )}
      {metric.stats.length > 1 && (
        <Select
          label="Figure"
          size="xs"
          w={150}
          allowDeselect={false}
          data={[
            { value: "ci_low", label: "low end of 95%" },
            { value: "value", label: "value" },
            { value: "ci_high", label: "high end of 95%" },
            { value: "n", label: "n" },
            { value: "p_holm", label: "p after Holm" },
            { value: "p", label: "p" },
          ].filter((one) => metric.stats.includes(one.value))}
          value={stat}
          onChange={(next) => next && setStat(next)}
        />
      )}
      {name !== "reward_hacking" && (
        <>
          <Select
            label="is"
            size="xs"
            w={70}
            allowDeselect={false}
            data={[">", ">=", "<", "<="]}
            value={op}
            onChange={(next) => next && setOp(next)}
          />
          <NumberInput label="Bound" size="xs" w={90} step={0.05} value={value} onChange={setValue} />
        </>
      )}
      <Button size="xs" variant="default" disabled={!complete} onClick={add}>
        Add the rule
      </Button>
    </Group>
  );
}
