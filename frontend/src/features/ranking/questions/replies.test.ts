import { describe, expect, it } from "vitest";
import { choiceOf, isOpen, withChoice, withReply, type Question } from "./replies";

const ONE: Question = {
  label: "Language",
  kind: "one_choice",
  choices: ["en", "fr"],
  help: "",
  required: true,
};
const SEVERAL: Question = {
  ...ONE,
  label: "Topics",
  kind: "several_choices",
  choices: ["code", "law", "art"],
};

describe("replies", () => {
  it("hold one choice, which the same key takes back", () => {
    const chosen = withChoice({}, ONE, "en");
    expect(withChoice(chosen, ONE, "fr")).toEqual({ Language: "fr" });
    expect(withChoice(chosen, ONE, "en")).toEqual({});
  });

  it("hold several choices", () => {
    const both = withChoice(withChoice({}, SEVERAL, "art"), SEVERAL, "code");
    expect(new Set(both.Topics)).toEqual(new Set(["art", "code"]));
    expect(withChoice(both, SEVERAL, "art")).toEqual({ Topics: ["code"] });
  });

  it("are missing where a required question has none", () => {
    expect(isOpen(ONE, {})).toBe(true);
    expect(isOpen(ONE, withReply({}, ONE, ""))).toBe(true);
    expect(isOpen(ONE, { Language: "en" })).toBe(false);
    expect(isOpen({ ...ONE, required: false }, {})).toBe(false);
  });

  it("are chosen by digits, 0 being the tenth", () => {
    const ten = { ...ONE, choices: Array.from({ length: 10 }, (_, place) => `c${place + 1}`) };
    expect(choiceOf("2", ONE)).toBe("fr");
    expect(choiceOf("3", ONE)).toBeUndefined();
    expect(choiceOf("0", ten)).toBe("c10");
    expect(choiceOf("Q", ten)).toBeUndefined();
  });
});
