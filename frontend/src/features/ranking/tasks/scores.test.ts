import { describe, expect, it } from "vitest";
import { cellsOf, nextOpen, scoreAt, scoreOf, withScore } from "./scores";

const cells = cellsOf(["A", "B"], ["truth", "style"]);

describe("scores", () => {
  it("go answer by answer, each by all criteria", () => {
    expect(cells.map(({ answer, criterion }) => `${answer} ${criterion}`)).toEqual([
      "A truth",
      "A style",
      "B truth",
      "B style",
    ]);
  });

  it("are given and taken away without touching others", () => {
    const one = withScore({ style: { A: 2 } }, cells[0]!, 5);
    expect(one).toEqual({ style: { A: 2 }, truth: { A: 5 } });
    expect(scoreAt(one, cells[0]!)).toBe(5);
    expect(withScore(one, cells[0]!, undefined)).toEqual({ style: { A: 2 }, truth: {} });
  });

  it("lead to the next one that is open, around the end", () => {
    const scores = { truth: { B: 1 }, style: { B: 1 } };
    expect(nextOpen(cells, scores, cells[2]!)).toEqual(cells[0]);
    expect(nextOpen(cells, { truth: { A: 1, B: 1 }, style: { A: 1, B: 1 } }, cells[2]!)).toEqual(cells[2]);
  });

  it("come from digits, of which 0 is ten, and never leave the scale", () => {
    expect(["1", "7", "8", "0", "A"].map((key) => scoreOf(key, 7))).toEqual([
      1,
      7,
      undefined,
      undefined,
      undefined,
    ]);
    expect(scoreOf("0", 10)).toBe(10);
  });
});
