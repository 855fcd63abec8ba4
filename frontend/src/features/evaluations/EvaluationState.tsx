import type { EvaluationSummary } from "../../api/evaluation/evaluations";
import { StateBadge } from "../../shared/StateBadge";

/** How the state of an evaluation looks: as the state of the runs that it is about. */
export function EvaluationState({ state }: { state: EvaluationSummary["state"] }) {
  const look = { answering: "running", answered: "succeeded", failed: "failed" }[state];
  return <StateBadge state={look} label={state} />;
}
