import type { Range } from "./ranges";

/** Round places along an axis, about `count` of them; on a logarithmic one the powers of ten, and 2 and 5 between few. */
export function marksOf(
  { min, max }: Range,
  count: number,
  { log = false, steps = [] as number[] } = {},
): number[] {
  if (!(max > min)) return [min];
  if (log) return logMarks(min, max, count);
  const least = (max - min) / count;
  const size = 10 ** Math.floor(Math.log10(least));
  const round = [1, 2, 5, 10].map((one) => one * size);
  const step = steps.find((one) => one >= least) ?? round.find((one) => one >= least * 0.999)!;
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  // Not 0.30000000000000004.
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

function logMarks(min: number, max: number, count: number): number[] {
  const first = Math.floor(Math.log10(min) + 1e-9);
  const last = Math.ceil(Math.log10(max) - 1e-9);
  const powers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  const every = Math.max(1, Math.ceil(powers.length / count));
  const between = powers.length <= count / 2 ? [1, 2, 5] : [1];
  return powers
    .filter((power) => (power - first) % every === 0)
    .flatMap((power) => between.map((one) => Number((one * 10 ** power).toPrecision(12))))
    .filter((mark) => mark >= min * (1 - 1e-9) && mark <= max * (1 + 1e-9));
}
