import type { Schemas } from "../../../api/client";
import { counted } from "../../../shared/format/format";

type Summary = Schemas["ReviewSummary"];

export function pendingRows({ edited, flipped, removed }: Summary): number {
  return edited + flipped + removed;
}

/** `2 rows edited and 1 row removed`. */
export function pendingWords(summary: Summary): string {
  const parts = (["edited", "flipped", "removed"] as const)
    .filter((what) => summary[what] > 0)
    .map((what) => `${counted(summary[what], "row")} ${what}`);
  return parts.length < 3 ? parts.join(" and ") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
