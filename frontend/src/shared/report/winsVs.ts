/** The heading of win rates; the baseline is named where all of them are against the same one. */
export function winsVs(baselines: (string | null | undefined)[]): string {
  const names = new Set(baselines);
  const [only] = names;
  return `Wins vs ${(names.size === 1 && only) || "baseline"}`;
}
