import { expect, test } from "vitest";
import { groupingsOf, groupsOf, mixesMethods, type RunTraits } from "./groupings";

const run = (some: Partial<RunTraits>): RunTraits => ({
  name: "sft",
  method: "sft",
  pipeline: null,
  tags: [],
  config: {},
  ...some,
});

const SWEEP = [1e-5, 1e-4].flatMap((lr) =>
  [1, 2, 3].map((seed) =>
    run({ name: `v-${lr}-${seed}`, config: { run: "train", lr, seed, lora: { rank: 8 } } }),
  ),
);

test("what differs between some runs and is the same of others is offered", () => {
  expect(groupingsOf(SWEEP).map(({ by }) => by)).toEqual(["all", "setting.lr", "setting.seed"]);
  expect(groupingsOf(SWEEP.slice(0, 3)).map(({ by }) => by)).toEqual(["all"]);
});

test("groups are in the order of their numbers, and a setting that a run lacks is a group", () => {
  const runs = [...SWEEP, run({ config: { lora: { rank: 16 } } })];
  expect([...groupsOf(runs, "setting.lr")]).toEqual([
    ["lr = none", [6]],
    ["lr = 1e-5", [0, 1, 2]],
    ["lr = 1e-4", [3, 4, 5]],
  ]);
  expect([...groupsOf(runs, "setting.lora.rank").keys()]).toEqual(["lora.rank = 8", "lora.rank = 16"]);
});

test("a run with two tags is in the groups of both, one without is in its own", () => {
  const runs = [run({ tags: ["good", "seed"] }), run({ tags: ["good"] }), run({})];
  expect([...groupsOf(runs, "tag")]).toEqual([
    ["good", [0, 1]],
    ["no tag", [2]],
    ["seed", [0]],
  ]);
});

test("methods are told apart, and all runs together are one group", () => {
  const runs = [run({}), run({ method: "dpo" }), run({ method: "dpo" })];
  expect([...groupsOf(runs, "method")]).toEqual([
    ["dpo", [1, 2]],
    ["sft", [0]],
  ]);
  expect([...groupsOf(runs, "all")]).toEqual([["all", [0, 1, 2]]]);
});

test("a group of several methods is known", () => {
  const runs = [run({ tags: ["a"] }), run({ method: "dpo", tags: ["b"] })];
  expect(mixesMethods(runs, "all")).toBe(true);
  expect(mixesMethods(runs, "tag")).toBe(false);
});
