import type { Run } from "../../api/runs/runs";

/** The stages that train, which alone log curves. */
export const withCharts = (runs: Run[]) => runs.filter((run) => run.method !== null);

/**
 * Names of the stages whose curves are shown first: those that train now; else all of the method that was last begun, so
 * that variants of a sweep and rounds share charts; else the first that is to come.
 */
export function chartedStages(runs: Run[]): string[] {
  const trained = withCharts(runs);
  const running = trained.filter((run) => run.state === "running");
  if (running.length) return running.map((run) => run.name);
  const begun = trained.filter((run) => run.started_at !== null || run.reused_from_id !== null);
  const last = begun.toSorted((a, b) => (a.started_at ?? "").localeCompare(b.started_at ?? "")).at(-1);
  if (last) return begun.filter((run) => run.method === last.method).map((run) => run.name);
  return trained.slice(0, 1).map((run) => run.name);
}
