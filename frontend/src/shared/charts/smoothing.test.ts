import { expect, test } from "vitest";
import { smoothed } from "./smoothing";

test("a constant stays what it is from its first value on", () => {
  for (const value of smoothed([5, 5, 5, 5], 0.9)) expect(value).toBeCloseTo(5, 12);
});

test("each value is the mean of those so far, the newest with the largest weight", () => {
  const [first, second, third] = smoothed([1, 2, 4], 0.5) as [number, number, number];
  expect(first).toBe(1);
  expect(second).toBeCloseTo((0.5 * 1 + 1 * 2) / 1.5, 12);
  expect(third).toBeCloseTo((0.25 * 1 + 0.5 * 2 + 1 * 4) / 1.75, 12);
});

test("without a weight nothing changes, and a gap stays a gap that leaves no trace", () => {
  expect(smoothed([3, 1, 2], 0)).toEqual([3, 1, 2]);
  const [, gap, after] = smoothed([1, null, 3], 0.5);
  expect(gap).toBeNull();
  expect(after).toBe(smoothed([1, 3], 0.5)[1]);
});
