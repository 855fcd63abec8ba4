import { expect, test } from "vitest";
import { colorOf, colorPlaces, dashOf } from "./colors";

test("a run keeps its colour when others come and go", () => {
  const first = colorPlaces(new Map(), ["a", "b", "c"]);
  expect([...first]).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 2],
  ]);
  const fewer = colorPlaces(first, ["a", "c"]);
  expect(fewer.get("c")).toBe(2);
  const more = colorPlaces(fewer, ["d", "a", "c"]);
  expect([more.get("d"), more.get("a"), more.get("c")]).toEqual([1, 0, 2]);
});

test("lines of one colour differ in their dashes", () => {
  expect(colorOf(8)).toBe(colorOf(0));
  expect(dashOf(0)).toBeUndefined();
  expect(dashOf(8)).toBeDefined();
});
