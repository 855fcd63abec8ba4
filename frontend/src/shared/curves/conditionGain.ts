import type { Series } from "../../api/runs/runs";
import type { Line } from "../charts/line";

const PREFIX = "eval_condition_gain_";
const LABELS: Record<string, string> = {
  shuffled: "over another row's",
  opposite: "over the opposite",
  mixture: "over the mixture",
};

export const isConditionGain = (name: string) => name.startsWith(PREFIX);

/** What a conditional policy gains by its condition, a line with its interval for each figure of several evaluations. */
export function conditionGainLines(series: Series[]): Line[] {
  const byName = new Map(series.map((one) => [one.name, one]));
  return Object.entries(LABELS).flatMap(([name, label]) => {
    const found = byName.get(PREFIX + name);
    if (!found || found.points.length < 2) return [];
    const [low, high] = ["low", "high"].map((end) => byName.get(`${PREFIX}${name}_${end}`)?.points);
    const whole = low?.length === found.points.length && high?.length === found.points.length;
    return [
      {
        label,
        points: found.points.map((point) => ({ x: point.step, y: point.value })),
        ...(whole && { band: low.map((point, at) => ({ low: point.value, high: high[at]!.value })) }),
      },
    ];
  });
}
