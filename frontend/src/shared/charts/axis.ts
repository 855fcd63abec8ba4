import { short, ticks } from "../format/format";

/** What x is, and how it is written. */
export interface XAxis {
  label: string;
  /** Labels of neighbouring marks on the axis. */
  ticks: (values: number[]) => string[];
  /** The label of one place, below the pointer. */
  read: (value: number) => string;
  /** Distances between marks, where those of numbers are not fit. */
  steps?: number[];
}

export const numbers = (label: string): XAxis => ({ label, ticks, read: short });

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const CLOCK = [
  ...[1, 2, 5, 10, 15, 30].flatMap((one) => [one, one * MINUTE]),
  ...[1, 2, 3, 6, 12].map((one) => one * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100].map((one) => one * DAY),
];

/** Seconds, in the largest units that fit: `1 h 30 min`. */
export const seconds = (label: string): XAxis => ({
  label,
  ticks: (values) => values.map(time),
  read: time,
  steps: [0.1, 0.2, 0.5, ...CLOCK.sort((a, b) => a - b)],
});

function time(value: number): string {
  if (value < MINUTE) return `${Number(value.toFixed(1))} s`;
  const whole = Math.round(value);
  const parts: [number, string][] = [
    [Math.floor(whole / DAY), "d"],
    [Math.floor((whole % DAY) / HOUR), "h"],
    [Math.floor((whole % HOUR) / MINUTE), "min"],
    [whole % MINUTE, "s"],
  ];
  const first = parts.findIndex(([amount]) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(" ");
}
