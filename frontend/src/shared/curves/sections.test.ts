import { expect, test } from "vitest";
import type { Series } from "../../api/runs/runs";
import { curvesOf, sectionsOf } from "./sections";

const series = (name: string, group: Series["group"], steps = 2): Series => ({
  name,
  group,
  steps,
  points: [],
});

const RUN = [
  series("eval_pair_accuracy", "first"),
  series("loss", "first"),
  series("eval_reward_std", "held_out"),
  series("lr", "training"),
  series("wall_seconds", "cost"),
  series("dropped", "training", 1),
  series("device/gpu_memory/host/0", "device"),
  series("device/gpu_memory/host/1", "device"),
];

const named = (pinned: string[] = [], search = "") =>
  sectionsOf(curvesOf([RUN]), pinned, search).map(({ key, curves }) => [
    key,
    ...curves.map((one) => one.key),
  ]);

test("what the method names comes first, and axes and single values are no curves", () => {
  expect(named()).toEqual([
    ["first", "eval_pair_accuracy", "loss"],
    ["held_out", "eval_reward_std"],
    ["training", "lr"],
    ["device", "device/gpu_memory"],
  ]);
});

test("pinned curves are before all others, in the order of pinning, and only there", () => {
  expect(named(["lr", "loss", "gone"]).slice(0, 2)).toEqual([
    ["pinned", "lr", "loss"],
    ["first", "eval_pair_accuracy"],
  ]);
});

test("a search finds every word, wherever in a name, and hides empty sections", () => {
  expect(named([], "EVAL std")).toEqual([["held_out", "eval_reward_std"]]);
  expect(named([], "pair_acc")).toEqual([["first", "eval_pair_accuracy"]]);
  expect(named([], "nothing")).toEqual([]);
});

test("several runs have one chart for a metric", () => {
  const curves = curvesOf([[series("loss", "first")], [series("loss", "first"), series("kl", "first")]]);
  expect(curves.map(({ key }) => key)).toEqual(["loss", "kl"]);
});
