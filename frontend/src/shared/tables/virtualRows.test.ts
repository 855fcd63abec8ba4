import { expect, it } from "vitest";
import { scrollTo, TALLEST, windowOf } from "./virtualRows";

const ROW = 40;
const VIEW = 600;

it.each([5, 100, 1_000_000, 50_000_000])("reaches the first and the last of %i rows", (rows) => {
  const start = windowOf(rows, ROW, 0, VIEW);
  expect(start.first).toBe(0);
  expect(start.top).toBe(0);
  expect(start.height).toBeLessThanOrEqual(TALLEST);
  const bottom = windowOf(rows, ROW, start.height - VIEW, VIEW);
  expect(bottom.end).toBe(rows);
  expect(bottom.top + (rows - bottom.first) * ROW).toBeCloseTo(start.height, 0);
});

it("draws the window full and little more, wherever it is", () => {
  for (let share = 0; share <= 1; share += 0.037) {
    const { height } = windowOf(1_000_000, ROW, 0, VIEW);
    const scrollTop = share * (height - VIEW);
    const seen = windowOf(1_000_000, ROW, scrollTop, VIEW);
    expect(seen.top).toBeLessThanOrEqual(scrollTop + 0.001);
    expect(seen.top + (seen.end - seen.first) * ROW).toBeGreaterThanOrEqual(scrollTop + VIEW - 0.001);
    expect(seen.end - seen.first).toBeLessThan(30);
  }
});

it("goes to a row by its number", () => {
  for (const row of [0, 12, 499_999, 999_980]) {
    const seen = windowOf(1_000_000, ROW, scrollTo(row, 1_000_000, ROW, VIEW), VIEW);
    expect(seen.first).toBeLessThanOrEqual(row);
    expect(seen.end).toBeGreaterThan(row);
  }
});
