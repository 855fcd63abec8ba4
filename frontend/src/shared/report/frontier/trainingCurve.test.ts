import { describe, expect, it } from "vitest";
import type { Series } from "../../../api/runs/runs";
import type { Report } from "../Figure";
import { modelsOf, nearest, trainingCurve } from "./trainingCurve";

const series = (name: string, values: Record<number, number>): Series => ({
  name,
  group: "held_out",
  steps: Object.keys(values).length,
  points: Object.entries(values).map(([step, value]) => ({
    step: Number(step),
    value,
    low: value,
    high: value,
  })),
});

describe("a training curve", () => {
  it("has the steps with both figures, in order", () => {
    const metrics = [
      series("kl", { 1: 0, 2: 1, 3: 3 }),
      series("loss", { 1: 9 }),
      series("reward", { 2: 5, 3: 6, 4: 7 }),
    ];
    expect(trainingCurve(metrics)).toEqual([
      { step: 2, kl: 1, reward: 5 },
      { step: 3, kl: 3, reward: 6 },
    ]);
  });

  it("is not there for a run without a reference, without rewards, or of one step", () => {
    expect(trainingCurve([series("reward", { 1: 1, 2: 2 })])).toEqual([]);
    expect(trainingCurve([series("kl", { 1: 1, 2: 2 })])).toEqual([]);
    expect(trainingCurve([series("kl", { 1: 1 }), series("reward", { 1: 1 })])).toEqual([]);
  });

  it("is of means over equal parts of a long run, and loses no step", () => {
    const values = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [at + 1, at]));
    const metrics = [series("kl", values), series("reward", values)];
    expect(trainingCurve(metrics, 4)).toEqual([
      { step: 2, kl: 0.5, reward: 0.5 },
      { step: 5, kl: 3, reward: 3 },
      { step: 7, kl: 5.5, reward: 5.5 },
      { step: 10, kl: 8, reward: 8 },
    ]);
  });
});

it("asks for each model once, with all of its entrants, and for none of endpoints and files", () => {
  const entrants = [
    { name: "dt_5", source: "model", model: "dt" },
    { name: "gpt", source: "endpoint", model: "gpt" },
    { name: "old", source: "import", model: null },
    { name: "dt_0", source: "model", model: "dt" },
    { name: "ours", source: "model", model: "online" },
  ];
  expect(modelsOf({ entrants } as unknown as Report)).toEqual([
    { model: "dt", entrants: ["dt_5", "dt_0"] },
    { model: "online", entrants: ["ours"] },
  ]);
});

it("reads the point that is nearest to the pointer, of whichever curve", () => {
  const curves = [
    [
      { left: 0, top: 0 },
      { left: 50, top: 0 },
    ],
    [{ left: 50, top: 20 }],
  ];
  expect(nearest(curves, { left: 45, top: 2 })).toEqual({ curve: 0, point: 1 });
  expect(nearest(curves, { left: 50, top: 15 })).toEqual({ curve: 1, point: 0 });
  expect(nearest(curves, { left: 200, top: 200 })).toBeNull();
});
