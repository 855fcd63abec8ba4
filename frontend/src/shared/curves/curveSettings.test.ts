import { expect, test } from "vitest";
import { DEFAULTS, readSettings } from "./curveSettings";

test("what was kept comes back", () => {
  const kept = {
    smoothing: 0.6,
    logX: true,
    logY: true,
    axis: "wall",
    pinned: ["lr"],
    open: { cost: true },
    yRanges: { loss: { min: 0, max: 2 }, kl: { outliers: 5 } },
    band: "deviation",
  };
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

test("of a range of y only what is a range is taken", () => {
  const yRanges = { loss: { min: "0", max: 3 }, kl: { outliers: 40 }, lr: [1], margin: null };
  expect(readSettings(JSON.stringify({ yRanges })).yRanges).toEqual({ loss: { max: 3 } });
});
