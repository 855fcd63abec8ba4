/** What a requested score means, from the policy's own record (`steerboard.json`). */
export interface ScoreScale {
  kind: "zscore" | "quantile" | "linear";
  normaliser: { mean: number; sd: number };
  /** (raw reward, score), rising in both; a z-score needs none. */
  knots: number[][];
}

/** The reward that a score asks for, in z units of the labels. */
export function requestedZ(scale: ScoreScale, score: number): number {
  if (scale.kind === "zscore") return score;
  const { knots, normaliser } = scale;
  const z = (reward: number) => (reward - normaliser.mean) / normaliser.sd;
  const after = knots.findIndex((knot) => knot[1]! > score);
  if (after === 0) return z(knots[0]![0]!);
  if (after < 0) return z(knots.at(-1)![0]!);
  const [[fromReward, fromScore], [toReward, toScore]] = [knots[after - 1]!, knots[after]!] as [
    [number, number],
    [number, number],
  ];
  return z(fromReward + ((toReward - fromReward) * (score - fromScore)) / (toScore - fromScore));
}
