import { expect, it } from "vitest";
import { requestedZ } from "./scoreScale";

const normaliser = { mean: 1, sd: 2 };

it("is the score itself on the z scale", () => {
  expect(requestedZ({ kind: "zscore", normaliser, knots: [] }, 2.5)).toBe(2.5);
});

it("is the reward at that place among the labels on the quantile scale, and never beyond them", () => {
  const knots = [
    [-3, -5],
    [1, 0],
    [2, 5],
  ];
  const at = (score: number) => requestedZ({ kind: "quantile", normaliser, knots }, score);
  expect([-9, -5, -2.5, 0, 2.5, 5, 9].map(at)).toEqual([-2, -2, -1, 0, 0.25, 0.5, 0.5]);
});
