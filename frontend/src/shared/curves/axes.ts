import type { Series } from "../../api/runs/runs";
import { numbers, seconds, type XAxis } from "../charts/axis";

export type AxisName = "step" | "tokens" | "device" | "wall";

interface Axis {
  name: AxisName;
  title: string;
  axis: XAxis;
  /** The metric that gives the place of a step. */
  metric?: string;
}

export const AXES: readonly Axis[] = [
  { name: "step", title: "Step", axis: numbers("step") },
  { name: "tokens", title: "Tokens", axis: numbers("tokens"), metric: "tokens" },
  { name: "device", title: "Device time", axis: seconds("device time"), metric: "device_seconds" },
  { name: "wall", title: "Wall time", axis: seconds("wall time"), metric: "wall_seconds" },
];

export const axisOf = (name: AxisName) => AXES.find((one) => one.name === name)!;

/** Metrics that give the places of steps; as curves of their own they would only rise. */
export const isAxis = (name: string) => name === "device_seconds" || name === "wall_seconds";

/** Axes on which all of these runs can be drawn: one that a run has not measured is left out. */
export function axesOf(runs: readonly (readonly Series[])[]): Axis[] {
  return AXES.filter(({ name }) => runs.every((series) => placeOf(series, name)));
}

/** From a step of a run to its place on an axis; null where it has none. Undefined where the run lacks the axis. */
export function placeOf(
  series: readonly Series[],
  name: AxisName,
): ((step: number) => number | null) | undefined {
  const { metric } = axisOf(name);
  if (!metric) return (step) => step;
  const found = series.find((one) => one.name === metric);
  if (!found?.points.length) return undefined;
  const known = name === "tokens" ? addedUp(found) : risen(found);
  return known && ((step) => between(known, step));
}

interface Known {
  step: number;
  value: number;
}

/** Tokens are logged by step, so they add up only if no step is missing. A point is the mean of the steps it stands for. */
function addedUp({ steps, points }: Series): Known[] | undefined {
  if (steps !== points.at(-1)!.step) return undefined;
  let [step, sum] = [0, 0];
  return [
    { step, value: sum },
    ...points.map((point) => {
      sum += point.value * (point.step - step);
      step = point.step;
      return { step, value: sum };
    }),
  ];
}

/** What rises is highest at the last of the steps that a point stands for, which is the one that it names. */
const risen = ({ points }: Series): Known[] => points.map(({ step, high }) => ({ step, value: high }));

function between(known: readonly Known[], step: number): number | null {
  let [low, high] = [0, known.length - 1];
  if (step < known[low]!.step || step > known[high]!.step) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (known[middle]!.step <= step) low = middle;
    else high = middle;
  }
  const [from, to] = [known[low]!, known[high]!];
  if (to.step === from.step) return to.value;
  return from.value + ((step - from.step) / (to.step - from.step)) * (to.value - from.value);
}
