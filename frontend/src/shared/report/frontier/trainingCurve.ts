import type { Series } from "../../../api/runs/runs";
import type { Report } from "../Figure";

/** The metrics that a curve is drawn from: what a run that samples its own answers logs at each step. */
export const CURVE_METRICS = ["reward", "kl"];

/** More than that is noise to the eye: one step's answers are few. */
const MOST_POINTS = 40;

export interface TrainingPoint {
  /** The last of the steps that it is the mean of. */
  step: number;
  kl: number;
  reward: number;
}

export interface TrainedModel {
  model: string;
  /** Its entrants, in their order: one model may be asked for several scores. */
  entrants: string[];
}

/** The models among the entrants, each once. */
export function modelsOf(report: Report): TrainedModel[] {
  const found = new Map<string, string[]>();
  for (const { model, source, name } of report.entrants) {
    if (source === "model" && model) found.set(model, [...(found.get(model) ?? []), name]);
  }
  return [...found].map(([model, entrants]) => ({ model, entrants }));
}

/**
 * Reward against KL as a run trained, in the order of its steps: means over equal numbers of logged steps that have both
 * figures, at most `most` of them. Empty for a run that does not log both, or only once.
 */
export function trainingCurve(series: Series[], most = MOST_POINTS): TrainingPoint[] {
  const [rewards, kls] = CURVE_METRICS.map((name) => series.find((one) => one.name === name)?.points ?? []);
  const klAt = new Map(kls!.map((point) => [point.step, point.value]));
  const steps = rewards!.flatMap(({ step, value }): TrainingPoint[] => {
    const kl = klAt.get(step);
    return kl === undefined ? [] : [{ step, kl, reward: value }];
  });
  if (steps.length < 2) return [];
  const parts = Math.min(most, steps.length);
  return Array.from({ length: parts }, (_, part) => {
    const inside = steps.slice(
      Math.floor((part * steps.length) / parts),
      Math.floor(((part + 1) * steps.length) / parts),
    );
    const mean = (of: "kl" | "reward") => inside.reduce((sum, one) => sum + one[of], 0) / inside.length;
    return { step: inside.at(-1)!.step, kl: mean("kl"), reward: mean("reward") };
  });
}

/** The point that is drawn nearest to a place, by the index of its curve and its own; null where it is far from all. */
export function nearest(
  curves: { left: number; top: number }[][],
  at: { left: number; top: number },
  within = 40,
): { curve: number; point: number } | null {
  let best: { curve: number; point: number } | null = null;
  let least = within;
  for (const [curve, points] of curves.entries()) {
    for (const [point, { left, top }] of points.entries()) {
      const far = Math.hypot(left - at.left, top - at.top);
      if (far < least) [best, least] = [{ curve, point }, far];
    }
  }
  return best;
}
