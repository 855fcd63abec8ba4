/** The axes of parallel coordinates: where a value is on one, from 0 at the bottom to 1 at the top. */

interface Tick {
  label: string;
  at: number;
}

export interface Axis {
  name: string;
  ticks: Tick[];
  place: (value: unknown) => number | null;
}

/** Values that span more than this factor are spread by their logarithm: 0.01, 0.1, 1. */
const LOG_FROM = 20;
/** With more values than this, only the ends are labelled. */
const MOST_TICKS = 6;
/** Labels closer than this share of the axis would cover each other. */
const CLOSEST = 0.07;

/** Numbers on a scale; anything else as categories, in the order of their first appearance. */
export function axisOf(name: string, values: unknown[], write: (value: number) => string): Axis {
  const known = values.filter((value) => value !== null && value !== undefined);
  const numbers = known.filter((value): value is number => typeof value === "number");
  return numbers.length === known.length ? numeric(name, numbers, write) : categories(name, known);
}

function numeric(name: string, numbers: number[], write: (value: number) => string): Axis {
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const log = low > 0 && high / low >= LOG_FROM;
  const scale = log ? Math.log : (value: number) => value;
  const place = (value: unknown) =>
    typeof value !== "number" || !numbers.length
      ? null
      : high === low
        ? 0.5
        : (scale(value) - scale(low)) / (scale(high) - scale(low));
  const distinct = [...new Set(numbers)].sort((a, b) => a - b);
  const labelled = distinct.length <= MOST_TICKS ? distinct : [low, high];
  const ticks = labelled.map((value) => ({ label: write(value), at: place(value) ?? 0 }));
  return { name, place, ticks: apart(ticks) };
}

function categories(name: string, values: unknown[]): Axis {
  const names = [...new Set(values.map(written))];
  const place = (value: unknown) => {
    const found = names.indexOf(written(value));
    if (value === null || value === undefined || found < 0) return null;
    return names.length === 1 ? 0.5 : found / (names.length - 1);
  };
  return { name, place, ticks: apart(names.map((label) => ({ label, at: place(label) ?? 0 }))) };
}

/** Both ends, and between them what leaves room for the labels. */
function apart(ticks: Tick[]): Tick[] {
  const last = ticks.at(-1);
  const kept: Tick[] = [];
  for (const tick of ticks) {
    const before = kept.at(-1);
    const room = !before || tick.at - before.at >= CLOSEST;
    if (tick === last || (room && last!.at - tick.at >= CLOSEST)) kept.push(tick);
  }
  return kept;
}

/** A setting as the recipe has it. */
export function written(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
