import { describe, expect, it } from "vitest";
import { partsOf } from "./textParts";

const shown = (text: string) =>
  partsOf(text).map(({ start, end, code }) => `${code ? "code" : "text"}:${text.slice(start, end)}`);

describe("parts of an answer", () => {
  it("are the text, without empty lines around it", () => {
    expect(shown("\n\n  a\n\nb\n")).toEqual(["text:  a\n\nb"]);
    expect(shown(" \n")).toEqual([]);
  });

  it("are code without its fences between texts, at the places of the whole", () => {
    const text = "See\n\n```py\nx = 1\n```\n\nso.\n```\nopen";
    expect(shown(text)).toEqual(["text:See", "code:x = 1\n", "text:so.\n```\nopen"]);
    expect(shown("```\n```")).toEqual(["code:"]);
  });
});
