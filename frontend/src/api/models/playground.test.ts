import { expect, it } from "vitest";
import { withChange, type AnswerChange, type Comparison } from "./playground";

const column = (place: number, text: string) => ({ place, text, state: "running" });

it("puts text where it belongs, also when a stream starts over", () => {
  const known = { id: "x", columns: [column(0, "Hel"), column(1, "")] } as unknown as Comparison;
  const change = (at: number, text: string) =>
    ({ place: 0, state: "running", at, text }) as unknown as AnswerChange;
  const longer = withChange(known, change(3, "lo"));
  expect(longer.columns.map((one) => one.text)).toEqual(["Hello", ""]);
  expect(withChange(longer, change(0, "Hello there")).columns[0]!.text).toBe("Hello there");
  expect(withChange(longer, change(0, "")).columns[0]!.text).toBe("");
});
