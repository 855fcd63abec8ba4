import { expect, test } from "vitest";
import type { Line } from "../charts/line";
import { meanOf } from "./groupMeans";

const line = (...points: [number, number | null][]): Line => ({
  label: "a",
  points: points.map(([x, y]) => ({ x, y })),
});

test("the mean of runs at the same steps, from the lowest to the highest", () => {
  const { points, band } = meanOf([line([1, 2], [2, 4]), line([1, 4], [2, 10])], "range");
  expect(points).toEqual([
    { x: 1, y: 3 },
    { x: 2, y: 7 },
  ]);
  expect(band).toEqual([
    { low: 2, high: 4 },
    { low: 4, high: 10 },
  ]);
});

test("a run is read between its steps, and the mean ends with the first of its runs", () => {
  const { points } = meanOf([line([0, 0], [10, 10]), line([5, 7], [20, 7])], "none");
  expect(points).toEqual([
    { x: 5, y: 6 },
    { x: 10, y: 8.5 },
  ]);
});

test("one standard deviation of the sample either way, none of a single run", () => {
  const { band } = meanOf([line([1, 1], [2, 5]), line([1, 2], [2, 5]), line([1, 3], [2, 5])], "deviation");
  expect(band).toEqual([
    { low: 1, high: 3 },
    { low: 5, high: 5 },
  ]);
});

test("a group of one run is its line, without a band", () => {
  expect(meanOf([line([1, 2], [2, null], [3, 4])], "range")).toEqual({
    points: [
      { x: 1, y: 2 },
      { x: 3, y: 4 },
    ],
  });
});
