import { expect, test } from "vitest";
import type { Import } from "../../../api/datasets/imports";
import { needsOf } from "./importNeeds";

const draft = {
  state: "draft",
  file_gone: false,
  problem: null,
  progress: null,
  report: null,
  options: { bad_rows: "refuse" },
} as unknown as Import;
const report = { read: 12, rows: 10, bad_rows: 2 } as Import["report"];

test("an import names what it lacks, and the step that leads on", () => {
  const problem = {
    code: "unknown_column",
    title: "A column",
    detail: "chosen has no column",
    hint: "Choose one.",
  };
  expect(needsOf({ ...draft, problem })).toEqual({
    lacks: "chosen has no column. Choose one.",
    step: "Map its columns",
  });
  expect(needsOf(draft)?.step).toBe("Check its rows");
  expect(needsOf({ ...draft, state: "validated", report })).toEqual({
    lacks: "2 of its 12 rows are not valid, and the file is refused for them.",
    step: "Correct or skip them",
  });
  const skipping = { ...draft.options, bad_rows: "skip" } as Import["options"];
  expect(needsOf({ ...draft, state: "validated", report, options: skipping })?.step).toBe(
    "Import its 10 rows",
  );
  expect(needsOf({ ...draft, state: "failed", problem })?.step).toBe("See what was refused");
  expect(needsOf({ ...draft, file_gone: true })?.lacks).toContain("Upload it again");
});

test("an import that has ended lacks nothing", () => {
  expect(needsOf({ ...draft, state: "succeeded" })).toBeUndefined();
  expect(needsOf({ ...draft, state: "cancelled" })).toBeUndefined();
});
