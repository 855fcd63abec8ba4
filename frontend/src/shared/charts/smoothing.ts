/**
 * An exponential moving average in which the first values count as much as they should: without dividing by the sum of
 * the weights, a curve would begin near 0. `weight`: 0 changes nothing, 0.99 is smoothest. A null stays one,
 * and leaves the average as it was.
 */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  let sum = 0;
  let weights = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    weights = weight * weights + (1 - weight);
    return sum / weights;
  });
}
