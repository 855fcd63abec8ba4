import { describe, expect, it } from "vitest";
import { firstOfEqual } from "../tasks/ranks";
import { flagOf, moved, quote, quoteOf, spreadSpans, trimmedPassage, wordsOf } from "./passages";

const answers = [
  { key: "A", turns: ["𝒳 is wrong.", "Yes, so.\n```py\nx\n```"] },
  { key: "B", turns: ["No."] },
  { key: "C", turns: ["\n No.\n"] },
];

describe("a passage by keys", () => {
  const words = wordsOf(answers, "A");
  const texts = words.map((word) => quote(answers, word));

  it("goes from word to word through what is shown of all turns", () => {
    expect(texts).toEqual(["𝒳", "is", "wrong", "Yes", "so", "x"]);
    const second = moved(words, words[0]!, 1, false);
    expect(quote(answers, second)).toBe("is");
    expect(quote(answers, moved(words, second, 10, false))).toBe("x");
    expect(quote(answers, moved(words, second, -10, false))).toBe("𝒳");
  });

  it("grows and shrinks by words within its turn, and keeps one", () => {
    const two = moved(words, words[1]!, 1, true);
    expect(quote(answers, two)).toBe("is wrong");
    expect(quote(answers, moved(words, two, 5, true))).toBe("is wrong");
    expect(quote(answers, moved(words, two, -5, true))).toBe("is");
  });

  it("is cut into words also where there are none", () => {
    const signs = [{ key: "A", turns: ["?! …"] }];
    expect(wordsOf(signs, "A").length).toBeGreaterThan(0);
    expect(wordsOf([{ key: "A", turns: [" "] }], "A")).toEqual([]);
  });
});

describe("a flag", () => {
  it("has offsets in code points of the text that was selected", () => {
    const passage = trimmedPassage(answers, { key: "A", turn: 1, start: 5, end: 11 })!;
    expect(quote(answers, passage)).toBe("wrong");
    const flag = flagOf(answers, passage, "factual error", " ");
    expect(flag).toEqual({ key: "A", turn: 1, start: 5, end: 10, label: "factual error", note: null });
    expect(quoteOf(answers, flag)).toBe("wrong");
    expect(trimmedPassage(answers, { key: "A", turn: 1, start: 2, end: 3 })).toBeNull();
  });

  it("is that of every identical answer, at its own place", () => {
    const flag = flagOf(answers, { key: "B", turn: 1, start: 0, end: 2 }, "unsafe", "why");
    const all = spreadSpans(answers, [flag], firstOfEqual(answers));
    expect(all.map(({ key, start, end }) => [key, start, end])).toEqual([
      ["B", 0, 2],
      ["C", 2, 4],
    ]);
    expect(all.map((span) => quoteOf(answers, span))).toEqual(["No", "No"]);
    expect(spreadSpans(answers, all, firstOfEqual(answers))).toEqual(all);
  });
});
