import { expect, test } from "vitest";
import { panned, resized, within, zeroRange } from "./ranges";

const WHOLE = { min: 0, max: 100 };

test("a move keeps the length, and ends where the data end", () => {
  expect(panned({ min: 40, max: 60 }, WHOLE, 0.5)).toEqual({ min: 50, max: 70 });
  expect(panned({ min: 40, max: 60 }, WHOLE, 9)).toEqual({ min: 80, max: 100 });
  expect(panned({ min: 40, max: 60 }, WHOLE, -9)).toEqual({ min: 0, max: 20 });
});

test("zooming keeps the middle, and never shows more than there is", () => {
  expect(resized(WHOLE, WHOLE, 0.5)).toEqual({ min: 25, max: 75 });
  expect(resized({ min: 0, max: 20 }, WHOLE, 2)).toEqual({ min: 0, max: 40 });
  expect(resized({ min: 10, max: 90 }, WHOLE, 2)).toEqual(WHOLE);
});

test("a logarithmic axis is moved and zoomed along its logarithms", () => {
  const whole = { min: 1, max: 10_000 };
  const zoomed = resized(whole, whole, 0.5, true);
  expect(zoomed.min).toBeCloseTo(10, 8);
  expect(zoomed.max).toBeCloseTo(1000, 6);
  const moved = panned({ min: 1, max: 100 }, whole, 0.5, true);
  expect(moved.min).toBeCloseTo(10, 8);
  expect(moved.max).toBeCloseTo(1000, 6);
});

test("a range is zoomed when it shows a part only", () => {
  expect(within({ min: 0, max: 50 }, WHOLE)).toBe(true);
  expect(within({ min: -1, max: 100 }, WHOLE)).toBe(false);
});

test("values that are all 0 are not drawn on an axis up to 100", () => {
  expect(zeroRange(0, 0)).toEqual([0, 1]);
  expect(zeroRange(0, 2)).toBeNull();
});
