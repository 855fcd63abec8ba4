import { expect, test } from "vitest";
import type { Series } from "../../api/runs/runs";
import { axesOf, placeOf } from "./axes";

const series = (name: string, points: [number, number, number?][], steps?: number): Series => ({
  name,
  group: "cost",
  steps: steps ?? points.length,
  points: points.map(([step, value, high = value]) => ({ step, value, low: value, high })),
});

const TOKENS = series("tokens", [
  [1, 100],
  [2, 50],
  [3, 150],
]);

test("tokens add up over the steps, also where a point is the mean of several", () => {
  const place = placeOf([TOKENS], "tokens")!;
  expect([0, 1, 2, 3].map(place)).toEqual([0, 100, 150, 300]);
  const thinned = series(
    "tokens",
    [
      [2, 75],
      [4, 100],
    ],
    4,
  );
  expect([2, 3, 4].map(placeOf([thinned], "tokens")!)).toEqual([150, 250, 350]);
});

test("tokens that were not logged at every step are no axis", () => {
  expect(
    placeOf(
      [
        series("tokens", [
          [2, 10],
          [4, 10],
        ]),
      ],
      "tokens",
    ),
  ).toBeUndefined();
});

test("time is what it was at the last step of a point, and between two of them", () => {
  const place = placeOf(
    [
      series("device_seconds", [
        [10, 4, 8],
        [20, 12, 16],
      ]),
    ],
    "device",
  )!;
  expect([10, 15, 20].map(place)).toEqual([8, 12, 16]);
  expect([5, 21].map(place)).toEqual([null, null]);
});

test("an axis that one of the runs lacks is not offered", () => {
  const timed = [TOKENS, series("wall_seconds", [[1, 5]])];
  expect(axesOf([timed]).map(({ name }) => name)).toEqual(["step", "tokens", "wall"]);
  expect(axesOf([timed, [TOKENS]]).map(({ name }) => name)).toEqual(["step", "tokens"]);
});
