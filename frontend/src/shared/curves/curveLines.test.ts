import { expect, test } from "vitest";
import type { Series } from "../../api/runs/runs";
import { type CurveRun, linesOf, xOf } from "./curveLines";

const points = (...values: number[]) =>
  values.map((value, at) => ({ step: at + 1, value, low: value, high: value }));
const series = (name: string, ...values: number[]): Series => ({
  name,
  group: name.startsWith("device/") ? "device" : "first",
  steps: values.length,
  points: points(...values),
});
const run = (label: string, color: number, ...own: Series[]): CurveRun => ({
  id: label,
  label,
  color,
  series: own,
});
const LOSS = { key: "loss", title: "loss", group: "first" } as const;

test("a single run's line is called as the metric, several by their runs in their colours", () => {
  const a = run("a", 3, series("loss", 2, 1));
  expect(linesOf(LOSS, [a], "step")).toEqual([
    {
      label: "loss",
      color: 0,
      points: [
        { x: 1, y: 2 },
        { x: 2, y: 1 },
      ],
    },
  ]);
  const both = linesOf(LOSS, [a, run("b", 5, series("loss", 4, 3)), run("c", 1)], "step");
  expect(both.map(({ label, color }) => [label, color])).toEqual([
    ["a", 3],
    ["b", 5],
  ]);
});

test("the points are where the axis has their steps", () => {
  const a = run("a", 0, series("loss", 2, 1), series("tokens", 100, 60));
  expect(linesOf(LOSS, [a], "tokens")[0]!.points).toEqual([
    { x: 100, y: 2 },
    { x: 160, y: 1 },
  ]);
});

test("devices are drawn over time, a line for each, whatever the axis is", () => {
  const curve = { key: "device/gpu_power", title: "gpu power", group: "device" } as const;
  const a = run("a", 0, series("device/gpu_power/host/0", 300), series("device/gpu_power/host/1", 310));
  expect(linesOf(curve, [a], "tokens").map(({ label, color }) => [label, color])).toEqual([
    ["host, 0", 0],
    ["host, 1", 1],
  ]);
  expect(xOf(curve, "tokens").label).toBe("time since the start");
});
