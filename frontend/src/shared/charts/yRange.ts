import type { Range } from "./ranges";

/** What a person chose to see of y. What is not given follows from the values. */
export interface YRange {
  min?: number;
  max?: number;
  /** Percent of the values that are left out at either end, so that a few spikes do not flatten the rest. */
  outliers?: number;
}

/** Shares that are offered, in percent. */
export const OUTLIERS = [1, 2, 5, 10] as const;

export const isChosen = (range: YRange | undefined): range is YRange =>
  range !== undefined && Object.values(range).some((value) => value !== undefined);

/** Why nothing can be drawn in this range; null if something can. */
export function faultOf({ min, max }: YRange): string | null {
  return min !== undefined && max !== undefined && min >= max
    ? "The minimum has to be below the maximum."
    : null;
}

/** The value that a share of the values does not exceed; between two values, it is interpolated. */
export function quantile(ascending: readonly number[], share: number): number {
  const place = share * (ascending.length - 1);
  const [low, high] = [ascending[Math.floor(place)]!, ascending[Math.ceil(place)]!];
  return low + (place - Math.floor(place)) * (high - low);
}

/** The extremes of what is left once the outliers are out; undefined without a value. */
export function withoutOutliers(values: readonly number[], outliers: number): Range | undefined {
  if (!values.length) return undefined;
  const ascending = values.toSorted((a, b) => a - b);
  return { min: quantile(ascending, outliers / 100), max: quantile(ascending, 1 - outliers / 100) };
}

/**
 * The ends that a person chose in place of those that follow from the values. An end that a logarithmic axis has no
 * place for, and ends in the wrong order, are not taken; an end on the wrong side of all values moves the other one.
 */
export function bounded(found: Range, chosen: YRange, log: boolean): Range {
  const fits = (end: number | undefined) => (end !== undefined && !(log && end <= 0) ? end : undefined);
  const [min, max] = [fits(chosen.min), fits(chosen.max)];
  if (min !== undefined && max !== undefined) return min < max ? { min, max } : found;
  const length = found.max - found.min || 1;
  if (min !== undefined) return { min, max: found.max > min ? found.max : log ? min * 10 : min + length };
  if (max !== undefined) return { min: found.min < max ? found.min : log ? max / 10 : max - length, max };
  return found;
}
