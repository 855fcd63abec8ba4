import { expect, test } from "vitest";
import type { Series } from "../../api/runs/runs";
import { conditionGainLines } from "./conditionGain";

function series(name: string, values: number[]): Series {
  const points = values.map((value, at) => ({ step: 10 * (at + 1), value, low: value, high: value }));
  return { name: `eval_condition_gain_${name}`, group: "held_out", steps: values.length, points };
}

test("each figure has a line with its interval", () => {
  const lines = conditionGainLines([
    series("shuffled", [0.1, 0.3]),
    series("shuffled_low", [0, 0.2]),
    series("shuffled_high", [0.2, 0.4]),
  ]);
  expect(lines).toEqual([
    {
      label: "over another row's",
      points: [
        { x: 10, y: 0.1 },
        { x: 20, y: 0.3 },
      ],
      band: [
        { low: 0, high: 0.2 },
        { low: 0.2, high: 0.4 },
      ],
    },
  ]);
});

test("few prompts give no interval, and a single evaluation no line", () => {
  expect(conditionGainLines([series("opposite", [0.1, 0.3])])[0]).not.toHaveProperty("band");
  expect(conditionGainLines([series("mixture", [0.1])])).toEqual([]);
});
