import { expect, test } from "vitest";
import { columnsOf, PLAIN, tableOf } from "./layout";
import type { Line } from "./line";

const line = (label: string, values: [number, number | null][]): Line => ({
  label,
  points: values.map(([x, y]) => ({ x, y })),
});

test("lines with other x values share one table, with gaps", () => {
  const lines = [
    line("a", [
      [1, 10],
      [3, 30],
    ]),
    line("b", [[2, 5]]),
  ];
  expect(tableOf(lines, PLAIN).data).toEqual([
    [1, 2, 3],
    [10, null, 30],
    [null, 5, null],
  ]);
});

test("smoothing keeps the raw values, drawn before all others", () => {
  const lines = [
    line("a", [
      [1, 0],
      [2, 4],
    ]),
  ];
  expect(columnsOf(lines, 0.5).map(({ part }) => part)).toEqual(["raw", "main"]);
  const [, raw, main] = tableOf(lines, { ...PLAIN, smoothing: 0.5 }).data;
  expect(raw).toEqual([0, 4]);
  expect(main![1]).toBeCloseTo(8 / 3, 12);
});

test("a band has two edges after the lines", () => {
  const banded = { ...line("a", [[1, 2]]), band: [{ low: 1, high: 3 }] };
  expect(columnsOf([banded, line("b", [[1, 9]])], 0)).toEqual([
    { line: 0, part: "main" },
    { line: 1, part: "main" },
    { line: 0, part: "high" },
    { line: 0, part: "low" },
  ]);
  expect(tableOf([banded], PLAIN).data).toEqual([[1], [2], [3], [1]]);
});

test("a logarithmic axis leaves out what it has no place for, and counts it", () => {
  const lines = [
    line("a", [
      [0, 5],
      [1, -1],
      [2, 8],
    ]),
  ];
  const table = tableOf(lines, { smoothing: 0, logX: true, logY: true });
  expect(table.data).toEqual([
    [1, 2],
    [null, 8],
  ]);
  expect(table.leftOut).toBe(2);
});

test("without a value above 0 an axis stays linear", () => {
  const table = tableOf([line("a", [[1, -2]])], { ...PLAIN, logY: true });
  expect(table).toMatchObject({ logY: false, leftOut: 0, data: [[1], [-2]] });
});
