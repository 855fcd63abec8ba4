/** Numbers and texts of a run's summary, in its order; a figure that has two names has one of them. */
export function figuresOf(summary: Record<string, unknown>): [string, number | string][] {
  return Object.entries(summary).filter(
    (entry): entry is [string, number | string] =>
      ["number", "string"].includes(typeof entry[1]) &&
      !(entry[0] === "eval_pair_accuracy" && entry[1] === summary.held_out_accuracy),
  );
}
