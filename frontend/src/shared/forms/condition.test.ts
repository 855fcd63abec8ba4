import { expect, it } from "vitest";
import {
  adapted,
  along,
  type Attribute,
  conditionOf,
  defaultOf,
  gradesOf,
  promptOf,
  shown,
  valuesOf,
  writtenFor,
} from "./condition";

const attribute = (name: string, of: Partial<Attribute> = {}): Attribute => ({
  ...{ name, low: 0, high: 4, step: 1, decimals: 0 },
  ...of,
});
const two = [attribute("helpfulness", { default: 4 }), attribute("verbosity")];
const score = [attribute("rm_score", { low: -5, high: 5, step: 0.1, default: 5 })];

it("is a number for the score alone, and a text in the policy's order otherwise", () => {
  expect(conditionOf({ rm_score: -2.5 }, score)).toBe(-2.5);
  expect(conditionOf({ verbosity: 2, helpfulness: 4 }, two)).toBe("helpfulness:4,verbosity:2");
  expect(conditionOf({}, two)).toBe("");
  for (const one of ["helpfulness:4,verbosity:-2.5", "verbosity:1"])
    expect(conditionOf(valuesOf(one), two)).toBe(one);
});

it("keeps of a condition what another policy knows, or takes its default", () => {
  expect(adapted("verbosity:1,humour:3", two)).toBe("verbosity:1");
  expect(adapted(3, two)).toBe("helpfulness:4");
  expect(adapted(null, score)).toBe(5);
  expect(defaultOf([attribute("verbosity")])).toBe("");
});

it("is shown to people", () => {
  expect([shown(-5), shown("a:1,b:2"), shown(""), shown(null)]).toEqual(["−5.0", "a:1, b:2", "nothing", "–"]);
});

it("lists a row's grades by name, and none of a row without", () => {
  const sample = { response: "Yes.", attributes: { verbosity: 1, coherence: 4, helpfulness: 3 } };
  expect(Object.keys(gradesOf(sample))).toEqual(["coherence", "helpfulness", "verbosity"]);
  expect([gradesOf({ response: "Yes." }), gradesOf(undefined)]).toEqual([{}, {}]);
});

it("knows along which attribute a curve is", () => {
  expect(along([5, -5])).toEqual({ name: "rm_score", values: [5, -5] });
  expect(along(["a:1,b:2", "a:1,b:3"])).toEqual({ name: "b", values: [2, 3] });
});

const form = (writing: object | undefined, attributes = score) =>
  ({ attributes, dropped: 0, ...(writing && { writing }) }) as never;
const words = ["terrible", "bad", "mediocre", "ordinary", "good", "great", "wonderful"];
const inWords = { style: "words", place: "both", words, phrase: "The opinion is {}." };

it("knows the word that the server writes for a score", () => {
  const at = [-9, -5, -3.6, -3.5, -0.7, 0.7, 0.8, 2.5, 3.5, 3.6, 5];
  expect(at.map((one) => words.indexOf(writtenFor(one, form(inWords))!.slice(1, -1)))).toEqual([
    0, 0, 0, 1, 3, 3, 4, 5, 5, 6, 6,
  ]);
  const ten = { ...inWords, words: [..."abcdefghij"] };
  const narrow = [attribute("rm_score", { low: -3, high: 3, step: 0.1, default: 3 })];
  expect([-2.4, -1.8, -1.2, -1.3, 0].map((one) => writtenFor(one, form(ten, narrow)))).toEqual(
    [..."bcdcf"].map((word) => `“${word}”`),
  );
  expect(writtenFor(5, form(undefined))).toBeNull();
});

it("shows a default as the prompt has it", () => {
  expect(promptOf(form(undefined))).toEqual({ request: "", opening: "<rm_score> 5.00" });
  expect(promptOf(form(inWords))).toEqual({ request: "The opinion is wonderful.", opening: "wonderful:" });
  expect(promptOf(form({ ...inWords, place: "request", style: "digits" }))).toEqual({
    request: "<rm_score> 5.00",
    opening: "",
  });
  const inTokens = { ...inWords, style: "tokens" };
  expect(promptOf(form(inTokens))).toEqual({
    request: "The opinion is<|rm_score_6|>.",
    opening: "<|rm_score_6|>:",
  });
  expect(promptOf(form({ ...inTokens, phrase: "{} it is" })).request).toBe("<|rm_score_6|> it is");
  expect(writtenFor(-5, form(inTokens))).toBe("<|rm_score_0|>, once “terrible”");
  const two = ["helpfulness", "verbosity"].map((name) => attribute(name, { default: 3 }));
  expect(promptOf(form(undefined, two)).opening).toMatch(/^helpfulness:3.*,verbosity:3/);
});
