import { expect, test } from "vitest";
import { mistakeOf, replaced } from "./mistake";

const problem = (position: unknown, length: unknown, location = "filter, character 1") => ({
  more: { position, length, suggestions: ["eval_loss"] },
  places: [{ location, message: "" }],
});

test("a mistake is cut out of its filter and replaced by a name", () => {
  const mistake = mistakeOf(problem(7, 8), "😀 tag:x eval_los < 1".slice(0))!;
  expect([...mistake.before].length).toBe(7);
  const exact = mistakeOf(problem(8, 8), "😀 tag:x eval_los < 1")!;
  expect(exact.wrong).toBe("eval_los");
  expect(replaced(exact, "eval_loss")).toBe("😀 tag:x eval_loss < 1");
  expect(replaced(exact, 'my "own"')).toBe('😀 tag:x "my \\"own\\"" < 1');
});

test("a mistake at the end of a filter has nothing to mark", () => {
  expect(mistakeOf(problem(4, 1), "lr <")).toMatchObject({ before: "lr <", wrong: "", after: "" });
});

test("what is wrong with a sort or another request is no mistake of the filter", () => {
  expect(mistakeOf(problem(0, 2, "sort, character 1"), "lr")).toBeNull();
  expect(mistakeOf(problem(undefined, 2), "lr")).toBeNull();
});
