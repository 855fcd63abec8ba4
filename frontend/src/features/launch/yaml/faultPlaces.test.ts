import { Text } from "@codemirror/state";
import { describe, expect, it } from "vitest";
import { marksOf, placeOf } from "./faultPlaces";

const TEXT = "name: é🙂\nstages:\n  sft: {run: train, lr: fast, batch: 8}\n  top:\n    size: many # rows\n";
const fault = (line: number | null, column: number | null, location = "x") => ({
  location,
  message: "is wrong",
  line,
  column,
});
const marked = (...faults: Parameters<typeof marksOf>[1][number][]) => {
  const text = Text.of(TEXT.split("\n"));
  return marksOf(text, faults).map(({ from, to }) => text.sliceString(from, to));
};

describe("the faults of a recipe", () => {
  it("are marked at the key and its value", () => {
    expect(marked(fault(3, 21), fault(5, 5), fault(2, 1))).toEqual(["lr: fast", "size: many", "stages:"]);
    expect(marked(fault(1, 8))).toEqual(["🙂"]);
  });

  it("are marked as near as can be where the text has become shorter", () => {
    expect(marked(fault(40, 3), fault(4, 90))).toHaveLength(2);
    expect(marksOf(Text.of([""]), [fault(1, 1)])).toEqual([
      { from: 0, to: 0, severity: "error", message: "is wrong" },
    ]);
  });

  it("name their line in words where the text is not YAML", () => {
    expect(placeOf(fault(null, null, "line 3"))).toEqual({ line: 3, column: 1 });
    expect(placeOf(fault(null, null, "stages.a (line 12)"))).toEqual({ line: 12, column: 1 });
    expect(marked(fault(null, null, "line 5"))).toEqual(["size: many"]);
  });

  it("of overrides are not of the text", () => {
    expect(placeOf(fault(null, null, "stages.sft.name (--set sft.name=line 3)"))).toBeNull();
    expect(marked(fault(null, null, "--set sft.lr=fast"))).toEqual([]);
  });
});
