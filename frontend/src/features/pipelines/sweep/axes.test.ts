import { expect, test } from "vitest";
import { axisOf } from "./axes";

const plain = (value: number) => String(value);

test("numbers that span orders of magnitude are spread by their logarithm", () => {
  const axis = axisOf("dpo.beta", [0.01, 0.1, 1], plain);
  expect(axis.place(0.1)).toBeCloseTo(0.5);
  expect(axis.ticks.map((tick) => tick.label)).toEqual(["0.01", "0.1", "1"]);
  expect(axisOf("epochs", [1, 2, 3], plain).place(2)).toBe(0.5);
  expect(axisOf("threshold", [-1, 0, 1], plain).place(0)).toBe(0.5);
});

test("one value is in the middle, and what is missing has no place", () => {
  expect(axisOf("lr", [3, 3], plain).place(3)).toBe(0.5);
  expect(axisOf("lr", [1, 2, null], plain).place(null)).toBeNull();
  expect(axisOf("figure", [], plain).place(undefined)).toBeNull();
});

test("anything else is a category in the order of its first appearance", () => {
  const axis = axisOf("dt.data", ["labelled", "filtered", "labelled"], plain);
  expect([axis.place("labelled"), axis.place("filtered")]).toEqual([0, 1]);
  const mixed = axisOf("lora", [{ rank: 4 }, false, 8], plain);
  expect(mixed.ticks.map((tick) => tick.label)).toEqual(['{"rank":4}', "false", "8"]);
  expect(mixed.place({ rank: 4 })).toBe(0);
});

test("labels that would cover each other are left out, the ends never", () => {
  const close = axisOf("lr", [1, 1.01, 1.5, 1.99, 2], plain);
  expect(close.ticks.map((tick) => tick.label)).toEqual(["1", "1.5", "2"]);
  const many = axisOf("figure", [1, 2, 3, 4, 5, 6, 7], plain);
  expect(many.ticks.map((tick) => tick.label)).toEqual(["1", "7"]);
});
