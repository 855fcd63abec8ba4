/** The kinds of rows that a mixture can have. */
export type Mixed = "instructions" | "preferences";

export interface Part {
  dataset: string | null;
  weight: number;
}

/** What a mixture for a slot has to be made of; null where a slot takes neither. */
export function mixedFor(allowed: string[]): Mixed | null {
  return (["instructions", "preferences"] as const).find((kind) => allowed.includes(kind)) ?? null;
}

/** The share of each part: its weight over the sum of all. */
export function sharesOf(weights: number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

/** What a dataset gives to a mixture: of a pair that is taken apart, both sides. */
export function given(makes: Mixed, dataset: { kind: string; rows: number }): number {
  return makes === "instructions" && dataset.kind === "preferences" ? 2 * dataset.rows : dataset.rows;
}

/** The rows of the largest mixture whose parts all have as many as their shares ask for. */
export function largest(shares: number[], rows: number[]): number {
  return Math.floor(Math.min(...shares.map((share, at) => (rows[at]! + 0.5) / share - 1e-9)));
}
