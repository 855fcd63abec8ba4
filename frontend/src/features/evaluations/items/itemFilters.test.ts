import { expect, it } from "vitest";
import type { ItemVerdict } from "../../../api/evaluation/items";
import { possible } from "./possible";
import { together } from "./together";

it("drops the filters whose other half is missing", () => {
  expect(possible({ b: "dt", length: "longer", outcome: "loss" })).toEqual({});
  expect(possible({ a: "sft", b: "sft" })).toEqual({ a: "sft" });
  expect(possible({ a: "sft", outcome: "win" })).toEqual({ a: "sft" });
  expect(possible({ source: "reward:rm", outcome: "flip" })).toEqual({ source: "reward:rm" });
  expect(possible({ source: "judge:j", other: "judge:j", outcome: "disagree" })).toEqual({
    source: "judge:j",
    outcome: "disagree",
  });
  expect(possible({ a: "sft", sort: "score" })).toEqual({ a: "sft" });
  expect(possible({ a: "sft", source: "judge:j", sort: "-difference" })).toEqual({
    a: "sft",
    source: "judge:j",
  });
  const by = { source: "judge:j", sort: "difference" } as const;
  const whole = { a: "sft", b: "dt", outcome: "loss", length: "similar", ...by } as const;
  expect(possible(whole)).toEqual(whole);
});

it("puts the verdicts of one answer of a judge together", () => {
  const verdict = (id: number, judge: string, style: ItemVerdict["style"], raw: string) =>
    ({ id, judge, style, raw, turn: 1 }) as ItemVerdict;
  const found = together([
    verdict(1, "all", "multi", "A 9, B 7"),
    verdict(2, "all", "multi", "A 9, B 7"),
    verdict(3, "two", "pairwise", "[[A]]"),
    verdict(4, "two", "pairwise", "[[A]]"),
  ]);
  expect(
    [...found].map(([judge, answers]) => [judge, answers.map((one) => one.map(({ id }) => id))]),
  ).toEqual([
    ["all", [[1, 2]]],
    ["two", [[3], [4]]],
  ]);
});
