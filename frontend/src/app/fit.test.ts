import { expect, it } from "vitest";
import { byFit } from "./fit";

const names = ["old-demo", "demolition", "Demo", "mydemo", "other", "demo.sft"];
const sorted = (wanted: string) => byFit(names, (name) => name, wanted);

it("puts an equal name before a beginning, a word, a part, and what was found by its tags", () => {
  expect(sorted("demo")).toEqual(["Demo", "demolition", "demo.sft", "old-demo", "mydemo", "other"]);
});

it("keeps the server's order without a text and among names that fit alike", () => {
  expect(sorted("")).toEqual(names);
  expect(byFit(["b-x", "a-x"], (name) => name, "x")).toEqual(["b-x", "a-x"]);
});
