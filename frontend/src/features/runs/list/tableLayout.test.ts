import { expect, test } from "vitest";
import { widthsOf } from "../../../shared/search";
import {
  askedOf,
  chosen,
  columnsOf,
  DEFAULT,
  fileColumns,
  isDefault,
  moved,
  othersOf,
  readLayout,
  withWidth,
} from "./tableLayout";

test("an address without columns has the key metric among its columns, and stays without them", () => {
  expect(columnsOf(undefined)).toEqual([
    "state",
    "key_metric",
    "kind",
    "duration",
    "device_seconds",
    "created",
  ]);
  expect(askedOf(columnsOf(undefined))).toBeUndefined();
});

test("an address of an earlier release shows its columns between the state and the kind", () => {
  expect(columnsOf(["lr", "eval_loss.min"])).toEqual([
    "state",
    "lr",
    "eval_loss.min",
    "kind",
    "duration",
    "device_seconds",
    "created",
  ]);
});

test("an order comes back from its address, also without any column but the name", () => {
  for (const columns of [["created", "lr", "state"], ["kl"], []])
    expect(columnsOf(askedOf(columns))).toEqual(columns);
});

test("a column takes the place of the one it was dropped on, from either side", () => {
  expect(moved(["a", "b", "c", "d"], "a", "c")).toEqual(["b", "c", "a", "d"]);
  expect(moved(["a", "b", "c", "d"], "d", "b")).toEqual(["a", "d", "b", "c"]);
  expect(moved(["a", "b"], "a", "gone")).toEqual(["a", "b"]);
});

test("a new column comes behind those of its sort, and nothing else moves", () => {
  expect(chosen(["created", "state", "lr", "kind"], ["created", "state", "lr", "kind", "kl"])).toEqual([
    "created",
    "state",
    "lr",
    "kl",
    "kind",
  ]);
  expect(chosen(DEFAULT.columns, ["state", "kind"])).toEqual(["state", "kind"]);
  expect(othersOf(["state", "lr", "key_metric"])).toEqual(["lr"]);
});

test("widths are whole and within bounds, and go back to what the column needs", () => {
  expect(withWidth({ lr: 90 }, "kl", 120.4)).toEqual({ lr: 90, kl: 120 });
  expect(withWidth({ lr: 90 }, "lr", 3)).toEqual({ lr: 40 });
  expect(withWidth({ lr: 90 }, "lr", undefined)).toEqual({});
  expect(widthsOf({ lr: 5000, kl: "wide" })).toEqual({ lr: 1000 });
  expect(widthsOf([1])).toBeUndefined();
});

test("a layout comes back from the browser, and what is none is left", () => {
  const layout = { columns: ["lr", "state"], widths: { name: 300 } };
  expect(readLayout(JSON.stringify(layout))).toEqual(layout);
  expect([undefined, "{", "null", "[]", '{"columns": [1]}'].map(readLayout)).toEqual(Array(5).fill(null));
  expect(isDefault(layout)).toBe(false);
  expect(isDefault({ ...DEFAULT, widths: { lr: 80 } })).toBe(false);
  expect(isDefault(DEFAULT)).toBe(true);
});

test("a file has the method next to the kind", () => {
  expect(fileColumns(["lr", "kind"])).toEqual(["lr", "kind", "method"]);
});
