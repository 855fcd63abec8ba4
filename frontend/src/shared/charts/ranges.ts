/** A part of an axis. */
export interface Range {
  min: number;
  max: number;
}

// A logarithmic axis is moved along its logarithms.
const onto = (value: number, log: boolean) => (log ? Math.log10(value) : value);
const back = (value: number, log: boolean) => (log ? 10 ** value : value);

/** The range moved by a share of its length (to the right, if positive), and no further than the whole. */
export function panned(range: Range, whole: Range, share: number, log = false): Range {
  const [min, max] = [onto(range.min, log), onto(range.max, log)];
  const length = max - min;
  const [first, last] = [onto(whole.min, log), onto(whole.max, log)];
  const from = Math.max(first, Math.min(last - length, min + share * length));
  return { min: back(from, log), max: back(Math.min(last, from + length), log) };
}

/** The range made longer by `factor` around its middle (shorter, below 1), and no longer than the whole. */
export function resized(range: Range, whole: Range, factor: number, log = false): Range {
  const [min, max] = [onto(range.min, log), onto(range.max, log)];
  const [first, last] = [onto(whole.min, log), onto(whole.max, log)];
  const length = Math.min(last - first, (max - min) * factor);
  const from = Math.max(first, Math.min(last - length, (min + max - length) / 2));
  return { min: back(from, log), max: back(from + length, log) };
}

/** Whether it is a part only of the whole. */
export const within = (range: Range, whole: Range) => range.min > whole.min || range.max < whole.max;

/** What is drawn of y where all values are 0: no axis up to 100, which hides that they are. */
export const zeroRange = (min: number, max: number): [number, number] | null =>
  min === 0 && max === 0 ? [0, 1] : null;
