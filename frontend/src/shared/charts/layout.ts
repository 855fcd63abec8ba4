import type { Line } from "./line";
import { smoothed } from "./smoothing";
import type { YRange } from "./yRange";

/** What a column of a chart is of the line at `line`: `raw` is what stays pale behind a smoothed one. */
export interface Column {
  line: number;
  part: "raw" | "main" | "low" | "high";
}

export interface Shown {
  /** 0 to 1, see `smoothed`. */
  smoothing: number;
  logX: boolean;
  logY: boolean;
  /** By default all values are in sight. */
  yRange?: YRange;
}

export const PLAIN: Shown = { smoothing: 0, logX: false, logY: false };

export interface Table {
  /** x, then one for each of `columns`. */
  data: [number[], ...(number | null)[][]];
  /** How many values a logarithmic axis has no place for. */
  leftOut: number;
  /** Whether y is on a logarithmic axis: asked for, and with a value above 0. */
  logY: boolean;
  logX: boolean;
}

/** The columns after x in the order in which they are drawn: what is pale first, the edges of bands last. */
export function columnsOf(lines: readonly Line[], smoothing: number): Column[] {
  const of = (part: Column["part"]) => lines.map((_, line): Column => ({ line, part }));
  const banded = (column: Column) => !!lines[column.line]!.band;
  return [
    ...(smoothing > 0 ? of("raw") : []),
    ...of("main"),
    ...of("high")
      .filter(banded)
      .flatMap((high): Column[] => [high, { line: high.line, part: "low" }]),
  ];
}

/** All lines over the x values of any. */
export function tableOf(lines: readonly Line[], { smoothing, logX, logY }: Shown): Table {
  const given = lines.flatMap((line) => line.points);
  const log = {
    x: logX && given.some(({ x }) => x > 0),
    y: logY && given.some(({ y }) => y !== null && y > 0),
  };
  const onX = (x: number) => !log.x || x > 0;
  const onY = (y: number | null | undefined) =>
    y === undefined || (log.y && y !== null && y <= 0) ? null : y;
  const xs = [...new Set(given.map(({ x }) => x).filter(onX))].sort((a, b) => a - b);
  const place = new Map(xs.map((value, at) => [value, at]));
  const column = ({ line, part }: Column) => {
    const { points, band } = lines[line]!;
    let values: (number | null)[];
    if (part === "low" || part === "high") values = points.map((_, at) => band![at]?.[part] ?? null);
    else values = points.map(({ y }) => y);
    // The average keeps its order: a smoothed line stays within its smoothed band.
    if (part !== "raw" && smoothing > 0) values = smoothed(values, smoothing);
    const made = new Array<number | null>(xs.length).fill(null);
    points.forEach(({ x }, at) => {
      const to = place.get(x);
      if (to !== undefined) made[to] = onY(values[at]);
    });
    return made;
  };
  const leftOut = given.filter(({ x, y }) => y !== null && (!onX(x) || onY(y) === null)).length;
  return { data: [xs, ...columnsOf(lines, smoothing).map(column)], leftOut, logX: log.x, logY: log.y };
}
