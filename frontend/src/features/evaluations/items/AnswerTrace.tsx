import { Button, Drawer, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import {
  answerTraceQuery,
  type AnswerTrace as Trace,
  type AnswerTurn,
  type AnswerVerdict,
  type ItemVerdict,
} from "../../../api/evaluation/items";
import { Facts, type Fact } from "../../../shared/Facts";
import { Loaded } from "../../../shared/Feedback";
import { count, figure, seconds, short, signed } from "../../../shared/format/format";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Turns } from "../../../shared/text/Turns";
import { verdictText } from "../verdictText";
import { CallTrace } from "./CallTrace";

const UNKNOWN = "not recorded";

interface Properties {
  project: string;
  evaluation: string;
  position: number;
  entrant: string;
  sample: number;
  onClose: () => void;
}

/** How one answer came about, and every reward and verdict on it. */
export function AnswerTrace({ project, evaluation, position, entrant, sample, onClose }: Properties) {
  const query = useQuery(answerTraceQuery(project, evaluation, position, entrant, sample));
  const [call, setCall] = useState<ItemVerdict | null>(null);
  if (call) {
    return (
      <CallTrace project={project} evaluation={evaluation} verdict={call} onClose={() => setCall(null)} />
    );
  }
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="xl"
      title={
        <Text fw={600}>
          Answer of {entrant}, prompt {position + 1}
          {sample > 0 && `, sample ${sample + 1}`}
        </Text>
      }
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loaded query={query}>
        {(trace) => (
          <Stack>
            <Facts facts={factsOf(trace)} columns={3} />
            {trace.turns.map((turn, at) => (
              <Turn key={at} turn={turn} name={trace.turns.length > 1 ? `Turn ${at + 1}` : "Answer"} />
            ))}
            <Verdicts trace={trace} onCall={setCall} />
          </Stack>
        )}
      </Loaded>
    </Drawer>
  );
}

/** What is the same for every turn: who answered, how, and the rewards. */
function factsOf(trace: Trace): Fact[] {
  const { decoding } = trace;
  const facts: Fact[] = [
    [
      "Answered by",
      trace.model ?? trace.endpoint ?? (trace.source === "import" ? "an import" : "a model that was deleted"),
      trace.engine ?? undefined,
    ],
    ["Temperature", trace.temperature === null ? UNKNOWN : short(trace.temperature)],
    ["Seed", trace.seed === null ? UNKNOWN : count(trace.seed)],
  ];
  for (const [name, value] of Object.entries(decoding)) {
    // The temperature of the prompt is above; what is absent changes nothing.
    const empty = value === null || (Array.isArray(value) && !value.length);
    if (name.startsWith("temperature") || empty) continue;
    facts.push([
      name.replaceAll("_", " "),
      typeof value === "number" ? figure(value) : typeof value === "string" ? value : JSON.stringify(value),
    ]);
  }
  return [...facts, ...trace.rewards.map((one): Fact => [`Reward by ${one.source}`, signed(one.value)])];
}

function Turn({ turn, name }: { turn: AnswerTurn; name: string }) {
  const ended = turn.finished === null ? UNKNOWN : turn.finished ? "by the model" : "by the token limit";
  return (
    <section aria-label={name}>
      <Title order={3} size="h5" mb="xs">
        {name}
      </Title>
      <Facts
        columns={4}
        facts={[
          ["Prompt", turn.prompt_tokens === null ? UNKNOWN : `${count(turn.prompt_tokens)} tokens`],
          ["Answer", turn.tokens === null ? UNKNOWN : `${count(turn.tokens)} tokens`],
          ["Ended", ended],
          ["Time", turn.seconds === null ? UNKNOWN : seconds(turn.seconds)],
        ]}
      />
      <Part title="Prompt as the model was given it">
        {turn.prompt === null ? (
          <>
            <Text size="sm" c="dimmed" mb={4}>
              The rendered prompt was not recorded; these are the messages.
            </Text>
            <Turns turns={turn.messages} />
          </>
        ) : (
          <pre className="text trace-text" tabIndex={0}>
            {turn.prompt}
          </pre>
        )}
      </Part>
      <Part title="Text of the answer">
        <pre className="text trace-text" tabIndex={0}>
          {turn.answer || "(empty)"}
        </pre>
      </Part>
    </section>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <Title order={4} size="h6" mt="sm" mb={4}>
        {title}
      </Title>
      {children}
    </>
  );
}

function Verdicts({ trace, onCall }: { trace: Trace; onCall: (verdict: ItemVerdict) => void }) {
  const known = (value: number | null, said: (value: number) => string) =>
    value === null ? "–" : said(value);
  const columns: Column<AnswerVerdict>[] = [
    {
      title: "Judge",
      cell: ({ verdict }) => (
        <>
          {verdict.judge}
          <Text size="xs" c="dimmed">
            {verdict.b === null ? `turn ${verdict.turn}` : `${verdict.a} against ${verdict.b}`}
          </Text>
        </>
      ),
    },
    {
      title: "Verdict",
      cell: ({ verdict }) => (verdict.value === null ? verdict.status : verdictText(verdict)),
    },
    {
      title: "Tokens",
      right: true,
      wide: true,
      cell: (one) =>
        one.prompt_tokens === null
          ? "–"
          : `${count(one.prompt_tokens)} in, ${count(one.completion_tokens)} out`,
    },
    { title: "Cost", right: true, wide: true, cell: (one) => known(one.cost, short) },
    { title: "Time", right: true, wide: true, cell: (one) => known(one.seconds, seconds) },
    {
      title: "From the cache",
      wide: true,
      cell: (one) => (one.cached === null ? "–" : one.cached ? "yes" : "no"),
    },
    {
      title: "Call",
      right: true,
      cell: ({ verdict }) =>
        verdict.called && (
          <Button
            size="compact-xs"
            variant="light"
            aria-label={`Open the call of ${verdict.judge}, verdict ${verdict.id}`}
            onClick={() => onCall(verdict)}
          >
            Open
          </Button>
        ),
    },
  ];
  return (
    <section aria-label="Verdicts">
      <Title order={3} size="h5" mb="xs">
        Verdicts
      </Title>
      {trace.verdicts.length ? (
        <DataTable
          label="Verdicts on the answer"
          rows={trace.verdicts}
          columns={columns}
          keyOf={({ verdict }) => String(verdict.id)}
        />
      ) : (
        <Text size="sm" c="dimmed">
          No judge has judged this answer.
        </Text>
      )}
      {trace.more_verdicts && (
        <Text size="sm" c="dimmed" mt="xs">
          There are more verdicts; these are the first {trace.verdicts.length}.
        </Text>
      )}
    </section>
  );
}
