import { expect, test } from "vitest";
import { DEFAULTS, readSettings } from "./curveSettings";

test("what was kept comes back", () => {
  const kept = { smoothing: 0.6, logX: true, logY: true, axis: "wall", pinned: ["lr"], open: { cost: true } };
  expect(readSettings(JSON.stringify(kept))).toEqual(kept);
});

test("what cannot be used is replaced by the default", () => {
  expect(readSettings(undefined)).toEqual(DEFAULTS);
  expect(readSettings("{")).toEqual(DEFAULTS);
  expect(readSettings("null")).toEqual(DEFAULTS);
  expect(readSettings('{"smoothing": 4, "axis": "moon", "pinned": [1, "lr"], "open": []}')).toEqual({
    ...DEFAULTS,
    pinned: ["lr"],
  });
});
