import { expect, test } from "vitest";
import { searchOf, viewOf, viewWords } from "./sampleViews";

test("a view is an address and back", () => {
  const search = { q: "tea", match: "part", split: "held_out", min: -1, marked: "flagged" } as const;
  expect(searchOf(viewOf(search))).toEqual(search);
  expect(searchOf(viewOf({}))).toEqual({});
});

test("a view is described in a few words", () => {
  expect(viewWords(viewOf({}))).toBe("all rows");
  expect(viewWords(viewOf({ q: "tea", match: "part", split: "held_out", min: 0, marked: "flagged" }))).toBe(
    '"tea" anywhere, held out, reward from 0, flagged',
  );
});
