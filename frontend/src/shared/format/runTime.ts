import type { Schemas } from "../../api/client";
import { between } from "./format";

type Timed = Pick<Schemas["RunSummary"], "started_at" | "ended_at" | "paused_seconds" | "paused_since">;

/** Seconds from its first start to its end, or until now, without those in which it was paused; null before its start. */
export function timeTaken(run: Timed, now: number): number | null {
  if (!run.started_at) return null;
  const end = run.ended_at ?? run.paused_since;
  const whole = (end ? Date.parse(end) : now) - Date.parse(run.started_at);
  return Math.max(0, whole / 1000 - run.paused_seconds);
}

type Spending = Pick<Schemas["RunSummary"], "device_seconds" | "failed_device_seconds">;

/** Seconds on devices of the attempts that have ended, failed ones included: what a run or a pipeline cost. */
export function deviceTime(one: Spending): number {
  return one.device_seconds + one.failed_device_seconds;
}

type TimedPipeline = Pick<Schemas["PipelineSummary"], "created_at" | "started_at" | "ended_at">;

/**
 * Seconds from a pipeline's first start to its end, or until now; null where no worker has taken any of it. `waits`:
 * those for which it has waited for its first start.
 */
export function pipelineTime(
  { created_at, started_at, ended_at }: TimedPipeline,
  now: number,
): { took: number | null; waits: number | null } {
  return {
    took: between(started_at, ended_at, now),
    waits: started_at || ended_at ? null : between(created_at, null, now),
  };
}
