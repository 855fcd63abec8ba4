import { expect, test } from "vitest";
import { textPairs } from "./sampleTexts";

const turn = (content: string, role = "user") => ({ role, content });

test("parts of two samples are paired by their names", () => {
  expect(
    textPairs(
      { prompt: [turn("Hi")], chosen: "a", margin: 1 },
      { prompt: [turn("Ho")], chosen: "a", source: "x" },
    ),
  ).toEqual([
    ["prompt", "Hi", "Ho"],
    ["chosen", "a", "a"],
    ["margin", "1", undefined],
    ["source", undefined, "x"],
  ]);
});

test("a longer conversation is compared turn by turn", () => {
  const later = [turn("Hi"), turn("Yes?", "assistant"), turn("Why?")];
  expect(textPairs({ prompt: later }, { prompt: [...later.slice(0, 2), turn("How?")] })).toEqual([
    ["turn 1: user", "Hi", "Hi"],
    ["turn 2: assistant", "Yes?", "Yes?"],
    ["turn 3: user", "Why?", "How?"],
  ]);
});
