import { expect, test } from "vitest";
import { given, largest, mixedFor, sharesOf } from "./mixture";

test("a slot that takes instructions gets them, one for pairs alone gets pairs, others no mixture", () => {
  expect(mixedFor(["instructions", "preferences"])).toBe("instructions");
  expect(mixedFor(["preferences"])).toBe("preferences");
  expect(mixedFor(["labelled"])).toBeNull();
});

test("shares are weights over their sum", () => {
  expect(sharesOf([3, 1])).toEqual([0.75, 0.25]);
});

test("a pair that is taken apart gives two rows", () => {
  expect(given("instructions", { kind: "preferences", rows: 10 })).toBe(20);
  expect(given("preferences", { kind: "preferences", rows: 10 })).toBe(10);
  expect(given("instructions", { kind: "labelled", rows: 10 })).toBe(10);
});

test("the largest mixture asks no part for more rows than it has", () => {
  for (const [weights, rows] of [
    [
      [1, 1],
      [100, 40],
    ],
    [
      [3, 1],
      [10, 90],
    ],
    [
      [1, 2, 4],
      [7, 11, 1000],
    ],
  ] as const) {
    const shares = sharesOf([...weights]);
    const size = largest(shares, [...rows]);
    const asked = (total: number) => shares.map((share) => Math.round(share * total));
    expect(asked(size).every((count, at) => count <= rows[at]!)).toBe(true);
    expect(asked(size + 2).some((count, at) => count > rows[at]!)).toBe(true);
  }
});
