import { expect, test } from "vitest";
import { labelOf, textsOfSample, withTexts } from "./editedSample";

const pair = {
  prompt: [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yes?" },
    { role: "user", content: "Why?" },
  ],
  chosen: "a",
  rejected: "b",
  margin: 1.5,
  source: "x",
};

test("every text of a sample can be edited, and the rest stays", () => {
  const texts = textsOfSample(pair);
  expect(Object.keys(texts)).toEqual([
    "prompt.0.content",
    "prompt.1.content",
    "prompt.2.content",
    "chosen",
    "rejected",
    "margin",
  ]);
  expect(withTexts(pair, texts)).toEqual(pair);
  expect(withTexts(pair, { ...texts, "prompt.2.content": "How?", chosen: "c", margin: "2" })).toEqual({
    ...pair,
    prompt: [...pair.prompt.slice(0, 2), { role: "user", content: "How?" }],
    chosen: "c",
    margin: 2,
  });
});

test("an empty number is left out, and any other text is sent to be refused", () => {
  expect(withTexts(pair, { ...textsOfSample(pair), margin: " " })).not.toHaveProperty("margin");
  expect(withTexts(pair, { ...textsOfSample(pair), margin: "much" }).margin).toBe("much");
});

test("a turn is called by its number and role where there are several", () => {
  expect(labelOf("prompt.1.content", pair)).toBe("turn 2: assistant");
  expect(labelOf("prompt.0.content", { prompt: [{ role: "user", content: "Hi" }] })).toBe("prompt");
  expect(labelOf("chosen", pair)).toBe("chosen");
});

test("text and arguments of an answer that calls tools can be edited, and its calls stay", () => {
  const call = (args: string) => ({ id: "c1", type: "function", function: { name: "add", arguments: args } });
  const sample = (content: string, args: string) => ({
    prompt: [{ role: "user", content: "2 + 5?" }],
    response: { role: "assistant", content, tool_calls: [call(args), call("{}")] },
  });
  const before = sample("", '{"a": 2}');
  const texts = textsOfSample(before);
  expect(Object.keys(texts).map((place) => labelOf(place, before))).toEqual([
    "prompt",
    "response: text before its calls",
    "response: arguments of add",
    "response: arguments of add",
  ]);
  expect(withTexts(before, texts)).toEqual(before);
  const edited = {
    ...texts,
    "response.content": "I add.",
    "response.tool_calls.0.function.arguments": '{"a": 3}',
  };
  expect(withTexts(before, edited)).toEqual(sample("I add.", '{"a": 3}'));
});
