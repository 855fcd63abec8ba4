import { expect, test } from "vitest";
import { criteriaOf } from "./criteria";

test("a line is a question, with the weight before it or 1", () => {
  expect(criteriaOf("Is it polite?\n\n 2.5: Is it true: really? \n")).toEqual([
    { question: "Is it polite?", weight: 1 },
    { question: "Is it true: really?", weight: 2.5 },
  ]);
  expect(criteriaOf(" \n")).toBeNull();
});
