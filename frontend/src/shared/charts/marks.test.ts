import { expect, test } from "vitest";
import { seconds } from "./axis";
import { marksOf } from "./marks";

test("marks are round and inside the range", () => {
  expect(marksOf({ min: 0.03, max: 0.97 }, 5)).toEqual([0.2, 0.4, 0.6, 0.8]);
  expect(marksOf({ min: -30, max: 120 }, 4)).toEqual([0, 50, 100]);
});

test("a logarithmic axis is marked at powers of ten, and between few of them", () => {
  expect(marksOf({ min: 1, max: 1e8 }, 6, { log: true })).toEqual([1, 100, 1e4, 1e6, 1e8]);
  expect(marksOf({ min: 0.1, max: 2 }, 6, { log: true })).toEqual([0.1, 0.2, 0.5, 1, 2]);
});

test("times are marked and written in minutes and hours", () => {
  const axis = seconds("wall time");
  const marks = marksOf({ min: 0, max: 7200 }, 5, { steps: axis.steps });
  expect(marks).toEqual([0, 1800, 3600, 5400, 7200]);
  expect(axis.ticks(marks)).toEqual(["0 s", "30 min", "1 h", "1 h 30 min", "2 h"]);
  expect(axis.read(90_061)).toBe("1 d 1 h");
  expect(axis.read(59.96)).toBe("60 s");
});
