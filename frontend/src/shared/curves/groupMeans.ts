import type { Line } from "../charts/line";

/** Around the mean of a group: from its lowest to its highest run, one standard deviation either way, or nothing. */
export type Band = "range" | "deviation" | "none";

export const BANDS: readonly Band[] = ["range", "deviation", "none"];

/**
 * The mean of several lines. Runs are not logged at the same steps, so between two of its points a line is read along
 * the straight line, and not before its first or after its last. The mean is drawn only where as many lines are read as
 * anywhere: with the end of one of them it would jump to the level of the others.
 */
export function meanOf(lines: readonly Line[], band: Band): Pick<Line, "points" | "band"> {
  const known = lines.map(({ points }) => points.filter((point): point is Point => point.y !== null));
  const xs = [...new Set(known.flat().map(({ x }) => x))].sort((a, b) => a - b);
  const read = known.map((points) => readerOf(points));
  const places = xs.map((x) => ({ x, values: read.flatMap((at) => at(x) ?? []) }));
  const most = Math.max(0, ...places.map(({ values }) => values.length));
  const shared = places.filter(({ values }) => values.length === most);
  const points = shared.map(({ x, values }) => ({ x, y: average(values) }));
  // One run alone has no spread.
  if (band === "none" || known.filter((points) => points.length > 0).length < 2) return { points };
  return { points, band: shared.map(({ values }) => (band === "range" ? extremes(values) : spread(values))) };
}

interface Point {
  x: number;
  y: number;
}

/** The value of a line at places that are asked for from left to right. */
function readerOf(points: readonly Point[]): (x: number) => number | undefined {
  let at = 0;
  return (x) => {
    while (at + 1 < points.length && points[at + 1]!.x <= x) at += 1;
    const [from, to] = [points[at], points[at + 1]];
    if (!from || x < from.x) return undefined;
    if (x === from.x) return from.y;
    return to && from.y + ((x - from.x) / (to.x - from.x)) * (to.y - from.y);
  };
}

const average = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;

const extremes = (values: readonly number[]) => ({ low: Math.min(...values), high: Math.max(...values) });

/** One sample standard deviation below and above the mean; none of a single value. */
function spread(values: readonly number[]): { low: number; high: number } {
  const mean = average(values);
  const squares = values.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  const deviation = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
  return { low: mean - deviation, high: mean + deviation };
}
