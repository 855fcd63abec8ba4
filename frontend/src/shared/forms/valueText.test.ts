import { expect, it } from "vitest";
import { inWords, show } from "./valueText";

it("shows a small number as it was written", () => {
  expect(show(5e-6)).toBe("5e-6");
  expect(show(null)).toBe("");
  expect(show(128)).toBe("128");
});

it("reads a list an item a line, without what is not set", () => {
  const text = inWords([
    { kind: "exact", weight: 2, extract: null },
    { kind: "regex", pattern: "a" },
  ]);
  expect(text).toBe("exact: weight 2\nregex: pattern a");
  expect(inWords({ rank: 8, inner: { a: 1e-6 } })).toBe("rank 8, inner (a 1e-6)");
  expect([inWords([0.5, 2]), inWords([]), inWords(null), inWords(false)]).toEqual([
    "0.5, 2",
    "none",
    "none",
    "false",
  ]);
});
