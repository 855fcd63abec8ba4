import { expect, test } from "vitest";
import { bounded, faultOf, isChosen, quantile, withoutOutliers } from "./yRange";

const FOUND = { min: 1, max: 5 };

test("a quantile is interpolated between its neighbours", () => {
  expect([0, 0.25, 0.5, 1].map((share) => quantile([0, 1, 2, 10], share))).toEqual([0, 0.75, 1.5, 10]);
});

test("a spike among many values is left out, whatever the order in which they come", () => {
  const values = [1000, ...Array.from({ length: 199 }, (_, at) => at / 100)];
  expect(withoutOutliers(values, 1)!.max).toBeLessThan(2);
  expect(withoutOutliers(values, 0)).toEqual({ min: 0, max: 1000 });
  expect(withoutOutliers([], 1)).toBeUndefined();
});

test("each end that was chosen takes the place of what follows from the values", () => {
  expect(bounded(FOUND, {}, false)).toEqual(FOUND);
  expect(bounded(FOUND, { min: 0 }, false)).toEqual({ min: 0, max: 5 });
  expect(bounded(FOUND, { min: -1, max: 2 }, false)).toEqual({ min: -1, max: 2 });
});

test("an end beyond all values moves the other one, so that the axis has a length", () => {
  expect(bounded(FOUND, { min: 8 }, false)).toEqual({ min: 8, max: 12 });
  expect(bounded(FOUND, { max: 0.5 }, true)).toEqual({ min: 0.05, max: 0.5 });
});

test("ends that cannot be drawn are not taken", () => {
  expect(bounded(FOUND, { min: 0 }, true)).toEqual(FOUND);
  expect(bounded(FOUND, { min: 4, max: 2 }, false)).toEqual(FOUND);
  expect(faultOf({ min: 4, max: 2 })).toMatch(/below the maximum/);
  expect(faultOf({ min: 4 })).toBeNull();
});

test("a range of which nothing is set is none", () => {
  expect([undefined, {}, { min: undefined }, { min: 0 }, { outliers: 1 }].map(isChosen)).toEqual([
    false,
    false,
    false,
    true,
    true,
  ]);
});
