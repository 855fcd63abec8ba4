import { Button, Card, SimpleGrid, Text } from "@mantine/core";
import { useState } from "react";
import type { RunDetail } from "../../api/runs/runs";
import { useNow } from "../../shared/format/clock";
import { figuresOf } from "../../shared/format/figures";
import { between, compact, percent, result, seconds } from "../../shared/format/format";
import { deviceTime, timeTaken } from "../../shared/format/runTime";

/** How many figures are shown where there are many; the others unfold. */
const FIRST = 5;

/** What a run took and found: the first few, and the others on demand. */
export function RunFigures({ run }: { run: RunDetail }) {
  const now = useNow();
  const [all, setAll] = useState(false);
  const figures = figuresOf(run.summary ?? {}).filter(
    ([name]) => !["trainable_parameters", "kept"].includes(name),
  );
  const learned = trained(run.summary);
  const first = FIRST + learned.length;
  const taken = seconds(timeTaken(run, now));
  // An attempt that still runs is not in the sum yet.
  const attempt = run.attempts.find((one) => !one.ended_at);
  const spent =
    deviceTime(run) + (attempt ? attempt.devices * (between(attempt.started_at, null, now) ?? 0) : 0);
  const cards: [string, string][] = [
    [run.state === "running" ? "Running for" : "Duration", taken],
    ["Device time", run.reused_from_id ? "reused" : spent ? seconds(spent) : "–"],
    ...learned,
    ...figures.map(([name, value]): [string, string] => [
      name.replaceAll("_", " "),
      typeof value !== "number" ? value : result(name, value),
    ]),
  ];
  const attempts: [string, string][] = [
    ["Failed attempts", `${run.failed_attempts} of at most ${run.max_attempts}`],
  ];
  if (run.interruptions > 0)
    attempts.push(["Interruptions", `${run.interruptions} of at most ${run.max_interruptions}`]);
  // A run that had to be tried again is something to know immediately.
  cards.splice(run.attempt > 1 || figures.length <= first ? 2 : cards.length, 0, ...attempts);
  const folded = cards.length > first + 3 ? cards.slice(first) : [];
  return (
    <>
      {typeof run.summary?.kept === "string" && (
        <Text size="sm" mb="xs">
          The saved weights are the {run.summary.kept}.
        </Text>
      )}
      <Cards cards={folded.length ? cards.slice(0, first) : cards} columns={folded.length ? first : 6} />
      {folded.length > 0 && (
        <>
          <Button variant="subtle" size="compact-sm" mt="xs" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Fewer figures" : `${folded.length} more figures`}
          </Button>
          {all && <Cards cards={folded} columns={6} mt="xs" />}
        </>
      )}
    </>
  );
}

/** How much of the model learns: all of it, or what LoRA adds. */
function trained(summary: RunDetail["summary"]): [string, string][] {
  const { trainable_parameters: learn, parameters: all } = summary ?? {};
  if (typeof learn !== "number" || typeof all !== "number") return [];
  const share = learn === all ? "all" : percent(learn / all, 2);
  return [["Trained parameters", `${compact(learn)} (${share})`]];
}

function Cards({ cards, columns, mt }: { cards: [string, string][]; columns: number; mt?: string }) {
  return (
    <SimpleGrid cols={{ base: 2, xs: 3, lg: columns }} spacing="sm" mt={mt}>
      {cards.map(([name, value]) => (
        <Card withBorder p="xs" key={name}>
          <Text size="xs" c="dimmed" lh={1.25}>
            {name}
          </Text>
          <Text fw={600} fz={{ base: "md", lg: "sm", xl: "md" }} style={{ overflowWrap: "anywhere" }}>
            {value}
          </Text>
        </Card>
      ))}
    </SimpleGrid>
  );
}
