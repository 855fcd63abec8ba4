import { expect, it } from "vitest";
import { form } from "../../../api/form";
import { ANSWERS } from "./answers";
import { fieldsSent } from "./fields";
import { JUDGMENTS } from "./judgments";

const sent = (fields: Parameters<typeof form>[0]) => Object.fromEntries(form(fields));

it("sends the fields of its file, trimmed, and none that are empty", () => {
  expect(sent(fieldsSent(ANSWERS.fields, { name: " gpt-4 ", family: "  " }))).toEqual({ name: "gpt-4" });
  const typed = { model: "judge", baseline: "sft", add_entrants: "true", of_another_file: "x" };
  expect(sent(fieldsSent(JUDGMENTS.fields, typed))).toEqual({
    model: "judge",
    baseline: "sft",
    add_entrants: "true",
  });
  expect(sent(fieldsSent(JUDGMENTS.fields, {}))).toEqual({ add_entrants: "false" });
});
