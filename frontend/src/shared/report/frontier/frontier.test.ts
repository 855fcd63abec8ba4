import { describe, expect, it } from "vitest";
import type { Report } from "../Figure";
import { curvesOf, measuresOf, placesOf, rangeOf, ticksOf } from "./frontier";

const estimate = (value: number | null) => ({ value, low: null, high: null, n: 10 });
const row = (entrant: string, reward: number, rate?: number) => ({
  entrant,
  reward: { rm: estimate(reward) },
  reward_win_rate: rate === undefined ? {} : { rm: estimate(rate) },
  judge_win_rate: {},
  human_win_rate: {},
});
const report = {
  baseline: "sft",
  methods: [row("sft", 0), row("dpo", 1, 0.7), row("greedy", 2, 0.8)],
  rewards: [{ reward_model: "rm", units: "z" }],
  frontier: {
    kl_to: "sft",
    entrants: [
      { entrant: "sft", kl: estimate(0), kind: "same" },
      { entrant: "dpo", kl: estimate(3), kind: "estimate" },
      { entrant: "greedy", kl: estimate(null), kind: "estimate", why: "its answers are greedy" },
    ],
    best_of_n: [
      {
        reward_model: "rm",
        entrant: "sft_8_samples",
        alike: ["sft"],
        n: [1, 2],
        kl: [0, 0.19],
        reward: [estimate(0), estimate(0.5)],
      },
    ],
  },
} as unknown as Report;

describe("the frontier", () => {
  it("has the entrants with both figures, and the curve where the measure is its reward", () => {
    const [reward, rate] = measuresOf(report);
    expect([reward!.axis, rate!.axis]).toEqual(["mean reward by rm (z)", "win rate against sft by rm (%)"]);
    expect(placesOf(report, reward!).map((one) => [one.entrant, one.kl.value, one.value.value])).toEqual([
      ["sft", 0, 0],
      ["dpo", 3, 1],
    ]);
    expect(placesOf(report, rate!).map((one) => one.entrant)).toEqual(["dpo"]);
    expect(curvesOf(report, reward!)[0]!.points).toEqual([
      { n: 1, kl: 0, value: 0 },
      { n: 2, kl: 0.19, value: 0.5 },
    ]);
    expect(curvesOf(report, rate!)[0]!.points).toEqual([
      { n: 1, kl: 0, value: 1 / 2 },
      { n: 2, kl: 0.19, value: 2 / 3 },
    ]);
    expect(curvesOf({ ...report, baseline: "dpo" }, rate!)).toEqual([]);
    expect(curvesOf(report, { ...rate!, reward: undefined })).toEqual([]);
  });

  it("has round ticks within a range that has some air", () => {
    expect(rangeOf([0, 10])).toEqual([-0.6, 10.6]);
    expect(rangeOf([2])[0]).toBeLessThan(2);
    expect(ticksOf(-0.6, 10.6)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticksOf(0.001, 0.0042)).toEqual([0.001, 0.002, 0.003, 0.004]);
  });
});
