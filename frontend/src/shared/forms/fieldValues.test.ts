import { describe, expect, it } from "vitest";
import { LISTS, SCHEMA } from "./exampleSchemas";
import { itemErrors, read, withText } from "./fieldValues";
import { type Field, fieldsOf } from "./schemaFields";

const fields = fieldsOf(SCHEMA);
const field = (name: string) => fields.find((one) => one.name === name)!;

it("reads what people type and reports what is wrong", () => {
  expect(read(field("lr"), " 1e-5 ")).toEqual({ value: 1e-5 });
  expect(read(field("lr"), "fast")).toEqual({ error: "not a number" });
  expect(read(field("lr"), "2")).toEqual({ error: "at most 1" });
  expect(read(field("max_steps"), "")).toEqual({ value: null });
  expect(read(field("max_steps"), "1.5")).toEqual({ error: "not a whole number" });
  expect(read(field("source"), "")).toEqual({ error: "needed" });
  expect(read(field("parts"), "[{]")).toEqual({ error: "not JSON" });
});

describe("lists", () => {
  const [rules, weights] = fieldsOf(LISTS) as [Field, Field];

  it("name what is not complete in which item", () => {
    const text = JSON.stringify([{ kind: "exact", weight: 2 }, { kind: "regex" }]);
    expect(read(rules, text)).toEqual({ error: "item 2 is not complete" });
    expect(itemErrors(rules, { kind: "regex" })).toEqual({ pattern: "needed" });
    expect(itemErrors(rules, { kind: "exact", weight: "1e-" })).toEqual({ weight: "not a number" });
  });

  it("keep what was typed, and leave defaults out", () => {
    const [weight] = rules.items![0]!.fields as [Field];
    expect(withText(weight, { kind: "exact" }, "2")).toEqual({ kind: "exact", weight: 2 });
    expect(withText(weight, { kind: "exact", weight: 2 }, "1")).toEqual({ kind: "exact" });
    expect(withText(weight, { kind: "exact" }, "1e-")).toEqual({ kind: "exact", weight: "1e-" });
  });

  it("may hold single values", () => {
    const [one] = weights.items![0]!.fields as [Field];
    expect(withText(one, "", "0.5")).toBe(0.5);
    expect(read(weights, "[0.5, 0]")).toEqual({ value: [0.5, 0] });
    expect(read(weights, '[""]')).toEqual({ error: "item 1 is not complete" });
    expect(read(weights, "")).toEqual({ value: null });
  });
});
