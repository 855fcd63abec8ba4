import { expect, it } from "vitest";
import {
  firstChoice,
  isComplete,
  METRICS,
  ruleOf,
  sourceOf,
  statsOf,
  withMetric,
  withReward,
} from "./ruleChoice";
import { readRules, writeRule } from "./rulesText";

const START = firstChoice(["sft", "dt"], "judge");
const ON_BENCHMARK = { ...withMetric(START, "benchmark_accuracy"), benchmark: "rewardbench" };

it("compares the last entrant with the first", () => {
  expect(ruleOf(START)).toMatchObject({
    metric: "win_rate",
    entrant: "dt",
    vs: "sft",
    by: "judge",
    stat: "ci_low",
    op: ">",
    value: 0.5,
  });
});

it.each(METRICS.map((metric) => metric.name))("writes a rule on %s that the text reads", (name) => {
  const rule = ruleOf({ ...withMetric(START, name), benchmark: "rewardbench" });
  const kept = Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== null));
  expect(readRules(`rules:\n  ${writeRule(rule)}`).rules).toEqual([kept]);
});

it("asks for the accuracy of a reward model on a benchmark", () => {
  expect(isComplete(withMetric(START, "benchmark_accuracy"))).toBe(false);
  expect(isComplete(ON_BENCHMARK)).toBe(true);
  expect(statsOf(ON_BENCHMARK)).not.toContain("p");
  expect(ruleOf({ ...ON_BENCHMARK, source: "candidate" })).toEqual({
    metric: "benchmark_accuracy",
    benchmark: "rewardbench",
    entrant: null,
    vs: null,
    by: "reward",
    source: "candidate",
    stat: "ci_low",
    op: ">",
    value: 0.6,
  });
});

it("compares a reward model with another, of which it must not be worse", () => {
  const compared = withReward(ON_BENCHMARK, "@production-reward");
  expect(ruleOf(compared)).toMatchObject({ vs: "@production-reward", stat: "ci_high", op: ">=", value: 0 });
  expect(statsOf(compared)).toContain("p");
  expect(isComplete({ ...compared, source: "@production-reward" })).toBe(false);
  expect(ruleOf(withReward(compared, null))).toMatchObject({ vs: null, stat: "ci_low", op: ">", value: 0.6 });
});

it("keeps the entrants when the metric changes", () => {
  expect(ruleOf(withMetric(ON_BENCHMARK, "length_ratio"))).toMatchObject({
    entrant: "dt",
    vs: "sft",
    by: null,
    benchmark: null,
    op: "<=",
    value: 1.5,
  });
  expect(ruleOf(withMetric(ON_BENCHMARK, "reward_hacking"))).toMatchObject({
    op: "==",
    value: false,
    stat: null,
  });
});

it("begins with a source that has figures", () => {
  const asked = { judges: [{ ok: 0 }], campaigns: [{ rankings: 0 }] };
  expect(sourceOf(asked)).toBe("reward");
  expect(sourceOf({ ...asked, campaigns: [{ rankings: 0 }, { rankings: 3 }] })).toBe("human");
  expect(sourceOf({ judges: [{ ok: 9 }], campaigns: [{ rankings: 3 }] })).toBe("judge");
});
