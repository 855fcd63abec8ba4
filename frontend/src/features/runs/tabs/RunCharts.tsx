import { Card, SimpleGrid, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { metricsQuery, type RunDetail, type Series } from "../../../api/runs/runs";
import { Chart } from "../../../shared/charts/Chart";
import { Empty, Loaded } from "../../../shared/Feedback";
import { Link, useProject } from "../../../shared/links";
import { conditionGainLines, isConditionGain } from "./conditionGain";

/** What is looked at first; the rest is behind a switch. */
const FIRST = new Set([
  "loss",
  "eval_loss",
  "reward",
  "eval_reward",
  "kl",
  "length",
  "ended",
  "entropy",
  "clip_share",
  "explained_variance",
  "pair_accuracy",
  "eval_pair_accuracy",
  "perplexity",
  "margin",
  "grad_norm",
  "tokens_per_second",
  "lr",
  "effective_sample_size",
]);

/** The curves of a run; of a reused one those of the run that did the work. */
export function RunCharts({ run, live, trains }: { run: RunDetail; live: boolean; trains: boolean }) {
  const project = useProject();
  const worked = run.reused_from_id;
  return (
    <>
      {worked && (
        <Text size="sm" mb="md">
          This run reused the outputs of an identical one. Its curves are those of{" "}
          <Link
            size="sm"
            underline="always"
            to="/p/$project/runs/$run"
            params={{ project, run: worked }}
            search={{ tab: "charts" }}
          >
            the run that did the work
          </Link>
          .
        </Text>
      )}
      <Curves project={project} run={worked ?? run.id} live={live} trains={trains} />
    </>
  );
}

function Curves({
  project,
  run,
  live,
  trains,
}: {
  project: string;
  run: string;
  live: boolean;
  trains: boolean;
}) {
  const [all, setAll] = useState(false);
  const query = useQuery(metricsQuery(project, run, live));
  return (
    <Loaded query={query}>
      {(series) => {
        if (!series.length) {
          return (
            <Empty title="No metrics">
              {!trains
                ? "A run of this kind logs none."
                : live
                  ? "They appear here with the first steps."
                  : "It ended before its first step; see the log and the timeline."}
            </Empty>
          );
        }
        const drawn = series.filter((one) => one.steps > 1 && !isConditionGain(one));
        const gain = series.filter(isConditionGain);
        const first = drawn.filter((one) => FIRST.has(one.name));
        const shown = all || !first.length ? drawn : first;
        if (!drawn.length)
          return (
            <Empty title="No curve yet">
              Every metric has a single value; a curve begins with the second step.
            </Empty>
          );
        return (
          <>
            {drawn.length > first.length && first.length > 0 && (
              <Switch
                mb="md"
                label={`All ${drawn.length} metrics`}
                checked={all}
                onChange={(event) => setAll(event.currentTarget.checked)}
              />
            )}
            <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
              <ConditionGainCard series={gain} />
              {shown.map((one) => (
                <MetricCard key={one.name} series={one} />
              ))}
            </SimpleGrid>
          </>
        );
      }}
    </Loaded>
  );
}

function MetricCard({ series }: { series: Series }) {
  const lines = useMemo(
    () => [{ label: series.name, points: series.points.map((point) => ({ x: point.step, y: point.value })) }],
    [series],
  );
  return (
    <Card withBorder p="sm">
      <Text fw={600} size="sm" mb={4}>
        {series.name.replaceAll("_", " ")}
      </Text>
      <Chart lines={lines} x="step" y={series.name} height={200} titled />
    </Card>
  );
}

/** Whether a conditional policy uses what it is asked for. */
function ConditionGainCard({ series }: { series: Series[] }) {
  const lines = useMemo(() => conditionGainLines(series), [series]);
  if (!lines.length) return null;
  return (
    <Card withBorder p="sm">
      <Text fw={600} size="sm">
        gain by the condition
      </Text>
      <Text size="xs" c="dimmed" mb={4}>
        How many nats likelier a held-out answer is under its own score or attributes than under others, with
        95% intervals. At 0 the condition is not used.
      </Text>
      <Chart lines={lines} x="step" y="nats an answer" height={200} marks />
    </Card>
  );
}
