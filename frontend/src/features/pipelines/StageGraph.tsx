import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Run, runQuery } from "../../api/runs/runs";
import { Graph, type GraphNode } from "../../shared/charts/Graph";
import { withoutShortcuts } from "../../shared/charts/graph";
import { useNow } from "../../shared/format/clock";
import { seconds } from "../../shared/format/format";
import { timeTaken } from "../../shared/format/runTime";

const COLOR: Record<string, string> = {
  pending: "gray",
  queued: "indigo",
  running: "blue",
  succeeded: "green",
  failed: "red",
  cancelled: "gray",
  skipped: "gray",
  paused: "yellow",
};

/** The stages of a pipeline with their state, and what each one needs. */
export function StageGraph({ project, runs }: { project: string; runs: Run[] }) {
  const details = useQueries({
    queries: runs.map((run) => ({ ...runQuery(project, run.id), staleTime: Infinity })),
  });
  const now = useNow();
  const inputs = details.map((detail) => detail.data?.inputs);
  const ready = inputs.every(Boolean);
  const edges = useMemo(() => {
    const made = new Map(
      runs.flatMap((run, at) => (details[at]?.data?.outputs ?? []).map((out) => [out.id, run.id])),
    );
    const all = runs.flatMap((run, at) =>
      (inputs[at] ?? []).map((input) => ({
        source: input.type === "run" ? input.id : (made.get(input.id) ?? input.id),
        target: run.id,
      })),
    );
    return withoutShortcuts(all);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- edges change with what is known of the runs only
  }, [ready, runs.length]);
  const nodes = runs.map((run): GraphNode => {
    const progress = run.progress as { done: number; total: number; phase: string } | null;
    const running = ["running", "pending"].includes(run.state) && progress?.total;
    return {
      id: run.id,
      title: run.name.split(".").at(-1) ?? run.name,
      detail: running
        ? `${progress.phase} ${Math.round((100 * progress.done) / progress.total)}%`
        : run.reused_from_id
          ? "reused"
          : run.state === "succeeded"
            ? seconds(timeTaken(run, now))
            : run.state,
      color: COLOR[run.state] ?? "gray",
      href: `/p/${project}/runs/${run.id}`,
      share: running ? progress.done / progress.total : undefined,
    };
  });
  return <Graph nodes={nodes} edges={edges} label="Stages of the pipeline and what each one needs" />;
}
