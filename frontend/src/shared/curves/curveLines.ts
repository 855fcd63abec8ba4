import type { Series } from "../../api/runs/runs";
import { seconds } from "../charts/axis";
import type { Line } from "../charts/line";
import { counted } from "../format/format";
import { type AxisName, axisOf, placeOf } from "./axes";
import { type Band, meanOf } from "./groupMeans";
import { type Curve, curveKey } from "./sections";

/** A run in a chart; `id` is that of the run that has the metrics, which for a reused one is another. */
export interface CurveRun {
  id: string;
  label: string;
  /** Its place among the colours. */
  color: number;
  series: Series[];
}

/** Runs that are drawn as their mean. */
export interface RunGroup {
  label: string;
  /** Its place among the colours. */
  color: number;
  runs: CurveRun[];
}

/** The horizontal axis: samples of devices are taken over time, whatever the others are shown over. */
export const xOf = ({ group }: Curve, axis: AxisName) =>
  group === "device" ? SINCE_START : axisOf(axis).axis;

const SINCE_START = seconds("time since the start");

/** The lines of a chart: one a run, or one for each device that was sampled. */
export function linesOf(curve: Curve, runs: readonly CurveRun[], axis: AxisName): Line[] {
  return runs.flatMap((run) => {
    const own = run.series.filter((one) => curveKey(one.name) === curve.key);
    const place = curve.group === "device" ? (step: number) => step : placeOf(run.series, axis);
    return own.map((series, at): Line => {
      const points = series.points.flatMap(({ step, value }) => {
        const x = place?.(step) ?? null;
        return x === null ? [] : [{ x, y: value }];
      });
      const device = series.name.slice(curve.key.length + 1).replaceAll("/", ", ");
      const label = runs.length > 1 ? [run.label, device].filter(Boolean).join(", ") : device || series.name;
      return { label, points, color: runs.length > 1 ? run.color : at };
    });
  });
}

/** A line for each group that has the metric: the mean of its runs, or of all that their devices measured. */
export function groupLinesOf(curve: Curve, groups: readonly RunGroup[], axis: AxisName, band: Band): Line[] {
  return groups.flatMap(({ label, color, runs }) => {
    const own = runs.map((run) => linesOf(curve, [run], axis)).filter((lines) => lines.length > 0);
    if (!own.length) return [];
    return [{ label: `${label} (${counted(own.length, "run")})`, color, ...meanOf(own.flat(), band) }];
  });
}
