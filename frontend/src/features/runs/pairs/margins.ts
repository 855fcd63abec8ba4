import type { PairMargin } from "../../../api/runs/pairs";

export type Range = [low: number, high: number];

/** From the smallest margin to the largest; of one value, a little to both sides. */
export function extent(pairs: readonly PairMargin[]): Range {
  const margins = pairs.map((one) => one.margin);
  const low = Math.min(...margins);
  const high = Math.max(...margins);
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

/** Equally wide bins over the range; the last one has its upper end. */
export function binsOf(pairs: readonly PairMargin[], [low, high]: Range, number = 40) {
  const width = (high - low) / number;
  const counts = Array.from({ length: number }, () => 0);
  for (const { margin } of pairs) {
    const at = Math.min(number - 1, Math.max(0, Math.floor((margin - low) / width)));
    counts[at]! += 1;
  }
  return counts.map((count, at) => ({ low: low + at * width, high: low + (at + 1) * width, count }));
}

export const inside = (pairs: readonly PairMargin[], [low, high]: Range) =>
  pairs.filter((one) => one.margin >= low && one.margin <= high);
