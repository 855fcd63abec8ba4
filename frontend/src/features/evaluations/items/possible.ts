import type { ItemsSearch } from "../../../shared/search";

/** Without the filters and the order that need another one which is not there. */
export function possible(filters: ItemsSearch): ItemsSearch {
  const { a, source, outcome, other, length, sort } = filters;
  const b = a && a !== filters.b ? filters.b : undefined;
  const needsEntrant = outcome === "win" || outcome === "tie" || outcome === "loss";
  const kept =
    (needsEntrant && !(a && source)) || (outcome === "flip" && !source?.startsWith("judge:"))
      ? undefined
      : outcome;
  return {
    ...filters,
    b,
    outcome: kept,
    other: kept === "disagree" && source && source !== other ? other : undefined,
    length: b ? length : undefined,
    sort: a && source && (b || !sort?.endsWith("difference")) ? sort : undefined,
  };
}
