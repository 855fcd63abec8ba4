import { expect, it } from "vitest";
import { LISTS, SCHEMA } from "./exampleSchemas";
import { newItem } from "./fieldValues";
import { type Field, fieldsOf } from "./schemaFields";

const fields = fieldsOf(SCHEMA);
const field = (name: string) => fields.find((one) => one.name === name)!;
const [rules, weights, nested] = fieldsOf(LISTS) as [Field, Field, Field];

it("has no field for constants and knows types, bounds, choices and sources", () => {
  expect(fields.map((one) => [one.name, one.type])).toEqual([
    ["source", "text"],
    ["lr", "number"],
    ["max_steps", "integer"],
    ["scale", "choice"],
    ["parts", "json"],
    ["decoding", "json"],
  ]);
  expect(field("scale").choices).toEqual(["zscore", "quantile"]);
  expect(field("lr")).toMatchObject({ maximum: 1, source: "a paper", description: "Peak." });
  expect(field("max_steps")).toMatchObject({ nullable: true, minimum: 1 });
});

it("edits a list item by item where the schema has a form for items", () => {
  expect([rules.type, weights.type, nested.type]).toEqual(["list", "list", "json"]);
  expect(rules.items!.map((one) => [one.kind, one.fields.map((field) => field.name)])).toEqual([
    ["exact", ["weight", "extract"]],
    ["regex", ["pattern"]],
  ]);
  expect(newItem(rules.items![1]!)).toEqual({ kind: "regex" });
});
