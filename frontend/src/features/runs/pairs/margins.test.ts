import { expect, test } from "vitest";
import type { PairMargin } from "../../../api/runs/pairs";
import { binsOf, extent, inside } from "./margins";

const pairs = [-1, -0.5, 0, 0.2, 3].map((margin, row) => ({ margin, row })) as PairMargin[];

test("each margin is in one bin, the ends among them", () => {
  const bins = binsOf(pairs, extent(pairs), 4);
  expect(bins.map((bin) => bin.count)).toEqual([2, 2, 0, 1]);
  expect([bins[0]!.low, bins[3]!.high]).toEqual([-1, 3]);
});

test("a range has its ends, and equal margins have a range", () => {
  expect(inside(pairs, [-0.5, 0.2]).map((one) => one.row)).toEqual([1, 2, 3]);
  expect(extent(pairs.slice(2, 3))).toEqual([-0.5, 0.5]);
});
