import { describe, expect, it } from "vitest";
import { pairOf, shadeOf, type Pair } from "./pairs";

const row: Pair = {
  a: "dt",
  b: "sft",
  wins: 6,
  ties: 1,
  losses: 3,
  win_rate: { value: 0.65, low: 0.4, high: 0.9, n: 10 },
  difference: { value: 0.5, low: -0.25, high: 1.25, n: 10 },
  p: 0.2,
  p_holm: 0.4,
  significant: false,
  length_matched: { value: 0.25, low: 0.125, high: 0.5, n: 4 },
  length_adjusted: { value: 0.75, low: 0.5, high: 0.875, n: 10 },
};

describe("pairOf", () => {
  it("finds a pair in the order of its row", () => {
    expect(pairOf([row], "dt", "sft")).toBe(row);
  });

  it("turns it for the other entrant", () => {
    const found = pairOf([row], "sft", "dt")!;
    expect([found.a, found.b, found.wins, found.losses]).toEqual(["sft", "dt", 3, 6]);
    expect(found.win_rate.value).toBeCloseTo(0.35);
    expect(found.win_rate.low).toBeCloseTo(0.1);
    expect(found.win_rate.high).toBeCloseTo(0.6);
    expect(found.difference).toEqual({ value: -0.5, low: -1.25, high: 0.25, n: 10 });
    expect(found.length_matched).toEqual({ value: 0.75, low: 0.5, high: 0.875, n: 4 });
    expect(found.length_adjusted).toEqual({ value: 0.25, low: 0.125, high: 0.5, n: 10 });
    expect([found.ties, found.p, found.p_holm, found.significant]).toEqual([1, 0.2, 0.4, false]);
  });

  it("keeps what is unknown unknown when it turns it", () => {
    const unknown = { value: null, low: null, high: null, n: 0 };
    const found = pairOf([{ ...row, difference: null, length_matched: unknown }], "sft", "dt")!;
    expect([found.difference, found.length_matched]).toEqual([null, unknown]);
  });

  it("has nothing where no item compares the two", () => {
    expect(pairOf([row], "dt", "mle")).toBeUndefined();
  });
});

describe("shadeOf", () => {
  it("is deeper further from a half", () => {
    expect(shadeOf(0.5)).toContain(" 0%");
    expect(shadeOf(1)).toContain("teal-filled) 30%");
    expect(shadeOf(0)).toContain("orange-filled) 30%");
  });
});
