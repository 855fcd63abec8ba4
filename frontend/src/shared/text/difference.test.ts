import { expect, it } from "vitest";
import { differences } from "./difference";

it("marks what is on one side only, and loses no character", () => {
  const a = "The dog is brown.\n\nIt is three years old.";
  const b = "The dog is black.\n\nIt barks.";
  const [left, right] = differences(a, b);
  expect(left.map((part) => part.text).join("")).toBe(a);
  expect(right.map((part) => part.text).join("")).toBe(b);
  const own = (parts: typeof left) => parts.filter((part) => part.own).map((part) => part.text);
  expect(own(left)).toContain("brown");
  expect(own(right)).toContain("black");
  expect(own(left).join("")).not.toContain("The dog");
});
