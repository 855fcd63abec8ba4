import { describe, expect, it } from "vitest";
import { codePointsBefore, inCodePoints, inUnits, segmentsOf, unitsBefore } from "./spans";

// Two UTF-16 units each: the letter and every person of the family, which zero-width joiners tie.
const TEXT = "𝒳 is 👩‍👩‍👧 wrong";

describe("offsets of passages", () => {
  it("count code points, whatever UTF-16 makes of them", () => {
    const start = TEXT.indexOf("wrong");
    const points = [...TEXT].join("|").split("|").indexOf("w");
    expect(start).toBe(15);
    expect(points).toBe(11);
    expect(codePointsBefore(TEXT, start)).toBe(points);
    expect(unitsBefore(TEXT, points)).toBe(start);
    expect(inCodePoints(TEXT, { start, end: TEXT.length })).toEqual({ start: points, end: points + 5 });
    expect(inUnits(TEXT, { start: points, end: points + 5 })).toEqual({ start, end: TEXT.length });
  });

  it("go there and back at every character", () => {
    for (let points = 0; points <= [...TEXT].length; points++) {
      expect(codePointsBefore(TEXT, unitsBefore(TEXT, points))).toBe(points);
    }
  });

  it("take a character whole of which half was selected", () => {
    expect(inCodePoints(TEXT, { start: 1, end: 4 })).toEqual({ start: 0, end: 3 });
    expect(inCodePoints(TEXT, { start: 0, end: 1 })).toEqual({ start: 0, end: 1 });
  });

  it("end with the text where it is shown in part", () => {
    expect(inUnits("abc", { start: 2, end: 9 })).toEqual({ start: 2, end: 3 });
    expect(segmentsOf("abc", { start: 0, end: 3 }, [{ start: 7, end: 9, label: "x" }])).toHaveLength(1);
  });
});

describe("segments", () => {
  it("cut the text where passages begin and end, also where they overlap", () => {
    const one = { start: 0, end: 5, label: "unsafe" };
    const other = { start: 3, end: 8, label: "repetition" };
    const found = segmentsOf("abcdefghij", { start: 0, end: 10 }, [one, other], { start: 9, end: 10 });
    expect(found.map(({ start, end, spans }) => [start, end, spans.map(({ label }) => label)])).toEqual([
      [0, 3, ["unsafe"]],
      [3, 5, ["unsafe", "repetition"]],
      [5, 8, ["repetition"]],
      [8, 9, []],
      [9, 10, []],
    ]);
    expect(found.map(({ pending }) => pending)).toEqual([false, false, false, false, true]);
  });

  it("are of one part of a longer text, at its own offsets", () => {
    const found = segmentsOf("abcdef", { start: 2, end: 4 }, [{ start: 0, end: 3, label: "x" }]);
    expect(found.map(({ start, end, spans }) => [start, end, spans.length])).toEqual([
      [2, 3, 1],
      [3, 4, 0],
    ]);
  });
});
