import { Alert, Card, SegmentedControl, Stack, Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Schemas } from "../../../api/client";
import { CorrelationTable } from "../../../shared/report/CorrelationTable";
import { Chart } from "../../../shared/charts/Chart";
import type { Line } from "../../../shared/charts/line";
import { Histogram } from "../../../shared/charts/Histogram";
import { Facts, type Fact } from "../../../shared/Facts";
import { count, percent, signed, counted } from "../../../shared/format/format";
import { type Column, DataTable } from "../../../shared/tables/DataTable";

type Result = Schemas["SelectionResult"];
type Estimate = Schemas["Estimate"];

const UNITS: Record<string, string> = { zscore: "z", probability: "win rate" };
// Above it, position decides about as often as the answers do.
const HIGH_FLIP_RATE = 0.3;
const DROPPED = {
  single: "with one answer, the others being empty",
  equal_texts: "whose best and worst answer are the same text",
  tied: "whose answers tie",
} as const;

function interval({ low, high }: Estimate): string {
  return low == null || high == null ? "" : ` [${signed(low)}, ${signed(high)}]`;
}

/** What was kept of several answers to each prompt, and what taking more of them would be worth. */
export function SelectionBody({ result }: { result: Result }) {
  const unit = UNITS[result.scale] ?? "raw";
  const facts: Fact[] = [
    [
      "Groups kept",
      count(result.kept_groups),
      `of ${count(result.groups)}, ${counted(result.answers, "answer")}`,
    ],
    ["Mean score", signed(result.mean.value), `${unit}${interval(result.mean)}`],
    ["Best score", signed(result.best.value), `${unit}${interval(result.best)}`],
    ["Unique texts", percent(result.unique_texts.value), "of a group's answers"],
    ["Length of the best", signed(result.length_gap.value, 1), "characters more than the mean of its group"],
  ];
  return (
    <Stack gap="lg">
      <div>
        <Facts facts={facts} columns={5} />
        {Object.entries(DROPPED).map(([why, words]) => {
          const number = result.dropped[why as keyof typeof DROPPED] ?? 0;
          return (
            number > 0 && (
              <Text key={why} size="sm" c="dimmed" mt="xs">
                {count(number)} {number === 1 ? "group" : "groups"} {words}: dropped.
              </Text>
            )
          );
        })}
      </div>
      {result.tournament && <Judged of={result.tournament} />}
      <Curve result={result} unit={unit} />
      {(result.margins ?? []).length > 0 && (
        <div>
          <Title order={3} size="h6">
            Best score minus worst
          </Title>
          <Card withBorder p="xs" maw={720}>
            <Histogram
              bins={(result.margins ?? []).map(({ low, high, n }) => ({ low, high, count: n }))}
              x={`margin (${unit})`}
              height={150}
            />
          </Card>
        </div>
      )}
      <Rewards result={result} />
      <Correlations result={result} />
    </Stack>
  );
}

/** The preference model's side of it. */
function Judged({ of }: { of: NonNullable<Result["tournament"]> }) {
  const facts: Fact[] = [
    ["Judge", of.judge, `each answer meets up to ${count(of.opponents)} others`],
    ["Comparisons", count(of.comparisons), "each in both orders"],
    [
      "Flips with the order",
      percent(of.flip_rate.value),
      of.flip_rate.low == null
        ? `${count(of.flips)} of them`
        : `${count(of.flips)} of them [${percent(of.flip_rate.low)}, ${percent(of.flip_rate.high)}]`,
    ],
    ["Ties", count(of.ties), "neither answer is ahead"],
  ];
  return (
    <div>
      <Title order={3} size="h6">
        Tournament
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        An answer’s score is the mean probability that it is better than those it met, both orders averaged.
      </Text>
      <Facts facts={facts} columns={4} />
      {(of.flip_rate.value ?? 0) > HIGH_FLIP_RATE && (
        <Alert color="yellow" variant="light" mt="sm" title="It depends on the position of the answers">
          More than {percent(HIGH_FLIP_RATE, 0)} of the verdicts change when the answers are exchanged, so
          little of this choice is about their content. Train the preference model longer, or select by
          rewards.
        </Alert>
      )}
    </div>
  );
}

function Curve({ result, unit }: { result: Result; unit: string }) {
  const [by, setBy] = useState("k");
  const lines = useMemo<Line[]>(() => {
    const banded = result.curve.every(({ score }) => score.low != null && score.high != null);
    return [
      {
        label: "score of the best",
        points: result.curve.map((one) => ({ x: by === "k" ? one.k : one.kl, y: one.score.value })),
        band: banded ? result.curve.map(({ score }) => ({ low: score.low!, high: score.high! })) : undefined,
      },
    ];
  }, [result, by]);
  // The first ones, powers of two, and the last: a sampling may have 256.
  const listed = result.curve.filter(
    ({ k }) => k <= 8 || Number.isInteger(Math.log2(k)) || k === result.curve.length,
  );
  const columns: Column<Result["curve"][number]>[] = [
    { title: "k", right: true, cell: (one) => one.k },
    { title: "KL at most", right: true, cell: (one) => signed(one.kl) },
    {
      title: `Score (${unit})`,
      right: true,
      cell: (one) => `${signed(one.score.value)}${interval(one.score)}`,
    },
    ...result.rewards.map((reward, at): Column<Result["curve"][number]> => ({
      title: `${reward.source}, raw`,
      right: true,
      wide: true,
      cell: (one) => signed(one.rewards[at], 3),
    })),
    { title: "Characters", right: true, cell: (one) => signed(one.characters, 0) },
  ];
  return (
    <div>
      <Title order={3} size="h6">
        Best of k
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        The expected best of k answers, the mean over {counted(result.curve_groups, "prompt")}, without bias
        from this one sampling. Selecting the best of k moves the policy by at most ln k − (k − 1)/k nats of
        KL divergence.
      </Text>
      <Card withBorder p="xs" maw={720}>
        <SegmentedControl
          size="xs"
          mb="xs"
          aria-label="Axis of the curve"
          value={by}
          onChange={setBy}
          data={[
            { value: "k", label: "by k" },
            { value: "kl", label: "by KL" },
          ]}
        />
        <Chart
          lines={lines}
          x={by === "k" ? "k" : "KL, at most (nats)"}
          y={`score of the best (${unit})`}
          height={240}
          marks={result.curve.length <= 64}
        />
      </Card>
      <DataTable label="Best of k" rows={listed} columns={columns} keyOf={(one) => String(one.k)} />
    </div>
  );
}

function Rewards({ result }: { result: Result }) {
  if (!result.rewards.length) return null;
  const columns: Column<Result["rewards"][number]>[] = [
    { title: "Reward", cell: (one) => one.source },
    { title: "Weight", right: true, cell: (one) => one.weight },
    { title: "Mean, raw", right: true, cell: (one) => `${signed(one.mean.value, 3)}${interval(one.mean)}` },
    {
      title: "Mean of the best, raw",
      right: true,
      cell: (one) => `${signed(one.best.value, 3)}${interval(one.best)}`,
    },
  ];
  return <DataTable label="Rewards" rows={result.rewards} columns={columns} keyOf={(one) => one.dataset} />;
}

function Correlations({ result }: { result: Result }) {
  if (!result.correlations) return null;
  return (
    <div>
      <Title order={3} size="h6">
        Correlation of the rewards
      </Title>
      <CorrelationTable of={result.correlations} />
    </div>
  );
}
