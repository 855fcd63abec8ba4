import { Costs } from "../../costs/Costs";
import { count, seconds, counted } from "../../format/format";
import type { Report } from "../Figure";

/** How many shared runs are named before the rest is counted. */
const NAMED = 4;

/** What it took to make each entrant. */
export function CostsSection({ report }: { report: Report }) {
  return (
    <Costs
      label="Cost of the entrants by phase"
      costs={report.costs.map((one) => ({ label: one.entrant, ledger: one.ledger, about: lineage(one) }))}
    />
  );
}

function lineage({
  own_device_seconds: own,
  runs,
  shared,
  shared_device_seconds: spent,
}: Report["costs"][number]): string {
  const ofRuns = runs === 1 ? "of 1 run" : `of ${counted(runs, "run")}`;
  const all = `own run ${own == null ? "unknown" : seconds(own)}; ${ofRuns}`;
  if (!spent) return all;
  const names = shared.slice(0, NAMED).map((one) => one.name);
  if (shared.length > NAMED) names.push(`${count(shared.length - NAMED)} more`);
  const what = names.length ? ` (${names.join(", ")})` : "";
  return `${all}; ${seconds(spent)} of it is shared with other entrants${what}`;
}
