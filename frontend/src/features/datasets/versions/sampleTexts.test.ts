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

test("an answer that calls tools is compared by its text and its calls", () => {
  const calling = (content: string, args: string) => ({
    role: "assistant",
    content,
    tool_calls: [{ function: { name: "add", arguments: args } }],
  });
  expect(
    textPairs({ response: calling("", '{"a": 2}') }, { response: calling("I add.", '{"a": 3}') }),
  ).toEqual([["response", 'add {"a": 2}', 'I add.\nadd {"a": 3}']]);
});
