import { expect, it } from "vitest";
import { readRules, RulesFault, writeRule } from "./rulesText";

const RULE = {
  metric: "win_rate",
  entrant: "dt",
  vs: "sft",
  by: "judge",
  stat: "ci_low",
  op: ">",
  value: 0.5,
};

it("reads the same rule however it is written", () => {
  const texts = [
    'rules:\n  - {metric: win_rate, entrant: dt, vs: sft, by: judge, stat: ci_low, op: ">", value: 0.5}\n',
    "- metric: win_rate # of all\n  entrant: dt\n  vs: 'sft'\n  by: judge\n  stat: ci_low\n  op: \">\"\n  value: 0.5",
    `rules:\n- ${writeRule(RULE).slice(2)}`,
    JSON.stringify({ rules: [RULE] }),
  ];
  for (const text of texts) expect(readRules(text).rules).toEqual([RULE]);
});

it("reads the fields next to the rules", () => {
  const text =
    'min_n: 20\nbaselines:\n  sft: {model: "sft@production"}\nrules:\n  - {metric: rank_correlation, by: [human, judge], source: [null, a-b], op: ">=", value: -1e-1}\n  -\n    metric: reward_hacking\n    value: false\n';
  expect(readRules(text)).toEqual({
    min_n: 20,
    baselines: { sft: { model: "sft@production" } },
    rules: [
      { metric: "rank_correlation", by: ["human", "judge"], source: [null, "a-b"], op: ">=", value: -0.1 },
      { metric: "reward_hacking", value: false },
    ],
  });
});

it.each([
  ["", 1],
  ["rules: 5", 1],
  ["rules:\n  - {metric: win_rate", 2],
  ["rules:\n  - {metric: a}\n - {metric: b}", 3],
  ["rules:\n  - metric: a\n    metric: b", 3],
  ["rules:\n  - 5", 1],
])("locates the fault in %j", (text, line) => {
  expect(() => readRules(text)).toThrow(RulesFault);
  try {
    readRules(text);
  } catch (fault) {
    expect((fault as RulesFault).line).toBe(line);
  }
});

it("puts names that YAML would read otherwise into quotes", () => {
  for (const entrant of ["true", "7b", "a: b", "dt_-5", "x # y"]) {
    expect(readRules(writeRule({ entrant })).rules).toEqual([{ entrant }]);
  }
});
