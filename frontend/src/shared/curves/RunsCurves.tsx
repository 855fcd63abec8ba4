import { Card, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { metricsQuery, type Run, type RunDetail } from "../../api/runs/runs";
import { Chart } from "../charts/Chart";
import { Empty, Failure, Loading } from "../Feedback";
import { Link } from "../links";
import { conditionGainLines, isConditionGain } from "./conditionGain";
import { CurvesPanel } from "./CurvesPanel";
import type { RunTraits } from "./groupings";

interface Properties {
  project: string;
  /** Runs with their settings can be put into groups by them. */
  runs: (Run | RunDetail)[];
  /** What distinguishes the runs. */
  labels: string[];
  /** The place of each among the colours. */
  colors: number[];
  pinned?: string[];
  onPin?: (pinned: string[]) => void;
  groupBy?: string;
  onGroupBy?: (by: string | null) => void;
}

/** The curves of one run, or of several in the same charts; of a reused run those of the run that did the work. */
export function RunsCurves({ project, runs, labels, colors, ...chosen }: Properties) {
  const queries = useQueries({
    queries: runs.map((run) => metricsQuery(project, run.reused_from_id ?? run.id, !run.ended_at)),
  });
  const stamps = queries.map((query) => query.dataUpdatedAt);
  const stamp = JSON.stringify([stamps, runs.map((run) => run.id), labels, colors]);
  const shown = useMemo(
    () =>
      runs.map((run, at) => ({
        id: run.reused_from_id ?? run.id,
        label: labels[at]!,
        color: colors[at]!,
        series: queries[at]?.data ?? [],
      })),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the stamp changes exactly when an answer came or a run has another name or colour
    [stamp],
  );
  // As JSON, because an equal answer of the server is another object.
  const written = runs.length > 1 && runs.every(isDetailed) ? JSON.stringify(runs.map(traitsOf)) : undefined;
  const traits = useMemo(() => (written ? (JSON.parse(written) as RunTraits[]) : undefined), [written]);
  const gain = useMemo(() => (shown.length === 1 ? conditionGainLines(shown[0]!.series) : []), [shown]);
  const failed = queries.find((query) => query.isError && !query.data);
  const drawn = shown.some((run) => run.series.some((series) => series.steps > 1));
  return (
    <>
      <Reused project={project} runs={runs} labels={labels} />
      {failed && <Failure error={failed.error!} retry={() => void failed.refetch()} />}
      {drawn ? (
        <CurvesPanel
          project={project}
          runs={shown}
          traits={traits}
          columns={{ base: 1, md: 2, xl: 3 }}
          leaveOut={gain.length ? isConditionGain : undefined}
          before={gain.length > 0 && <ConditionGainCard lines={gain} />}
          {...chosen}
        />
      ) : queries.some((query) => query.isPending) ? (
        <Loading rows={3} />
      ) : (
        !failed && <NoCurves runs={runs} measured={shown.some((run) => run.series.length > 0)} />
      )}
    </>
  );
}

const isDetailed = (run: Run | RunDetail): run is RunDetail => "config" in run;

const traitsOf = ({ name, method, pipeline, marks, config }: RunDetail): RunTraits => ({
  name,
  method,
  pipeline: pipeline?.name ?? null,
  tags: marks.tags,
  config,
});

function NoCurves({ runs, measured }: { runs: Run[]; measured: boolean }) {
  if (measured)
    return (
      <Empty title="No curve yet">
        Every metric has a single value; a curve begins with the second step.
      </Empty>
    );
  return (
    <Empty title="No metrics">
      {runs.every((run) => run.method === null)
        ? "Runs of this kind log none."
        : runs.some((run) => !run.ended_at)
          ? "They appear here with the first steps."
          : runs.length > 1
            ? "None of these runs got to its first step."
            : "It ended before its first step; see the log and the timeline."}
    </Empty>
  );
}

/** Whether a conditional policy uses what it is asked for. */
function ConditionGainCard({ lines }: { lines: ReturnType<typeof conditionGainLines> }) {
  return (
    <Card withBorder p="sm">
      <Chart title="gain by the condition" lines={lines} x="step" y="nats an answer" height={200} marks />
      <Text size="xs" c="dimmed" mt={4}>
        How many nats likelier a held-out answer is under its own score or attributes than under others, with
        95% intervals. At 0, the condition is not used.
      </Text>
    </Card>
  );
}

function Reused({ project, runs, labels }: Pick<Properties, "project" | "runs" | "labels">) {
  return runs.map(
    (run, at) =>
      run.reused_from_id && (
        <Text key={run.id} size="sm" mb="xs">
          {runs.length > 1 ? labels[at] : "This run"} reused the outputs of an identical one. Its curves are
          those of{" "}
          <Link
            size="sm"
            underline="always"
            to="/p/$project/runs/$run"
            params={{ project, run: run.reused_from_id }}
            search={{ tab: "charts" }}
          >
            the run that did the work
          </Link>
          .
        </Text>
      ),
  );
}
