import { describe, expect, it } from "vitest";
import {
  asked,
  changed,
  type Field,
  faultsIn,
  fieldsOf,
  inWords,
  itemErrors,
  itemFaults,
  type ItemKind,
  newItem,
  read,
  show,
  textsOf,
  withText,
} from "./schemaForm";

const SCHEMA = {
  required: ["method", "source"],
  $defs: {
    Scale: { enum: ["zscore", "quantile"], type: "string" },
    Lora: {
      type: "object",
      description: "Adapters.",
      properties: {
        rank: { type: "integer", minimum: 1, default: 16 },
        merge: { type: "boolean", default: true },
      },
    },
  },
  properties: {
    run: { const: "train", default: "train" },
    method: { const: "rwr" },
    source: { type: "string" },
    lr: {
      type: "number",
      exclusiveMinimum: 0,
      maximum: 1,
      default: 5e-6,
      description: "Peak.",
      source: "a paper",
    },
    max_steps: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], default: null },
    scale: { $ref: "#/$defs/Scale", default: "zscore" },
    parts: { type: "array", default: [] },
    decoding: { type: "object" },
  },
};

const LISTS = {
  $defs: {
    Exact: {
      type: "object",
      description: "Equal.",
      properties: {
        kind: { const: "exact", type: "string" },
        weight: { type: "number", default: 1 },
        extract: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
      },
    },
    Regex: {
      type: "object",
      properties: { kind: { const: "regex", type: "string" }, pattern: { type: "string" } },
      required: ["kind", "pattern"],
    },
  },
  properties: {
    rules: {
      type: "array",
      items: {
        discriminator: { propertyName: "kind" },
        oneOf: [{ $ref: "#/$defs/Exact" }, { $ref: "#/$defs/Regex" }],
      },
    },
    weights: { anyOf: [{ type: "array", items: { type: "number" } }, { type: "null" }], default: null },
    nested: { type: "array", items: { type: "object", properties: { inner: { type: "object" } } } },
  },
};

describe("lists", () => {
  const [rules, weights, nested] = fieldsOf(LISTS) as [Field, Field, Field];

  it("are edited item by item where the schema has a form for items", () => {
    expect([rules.type, weights.type, nested.type]).toEqual(["list", "list", "json"]);
    expect(rules.items!.map((one) => [one.kind, one.fields.map((field) => field.name)])).toEqual([
      ["exact", ["weight", "extract"]],
      ["regex", ["pattern"]],
    ]);
    expect(newItem(rules.items![1]!)).toEqual({ kind: "regex" });
  });

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

  it("show what the server found wrong at the item, whether the place names its kind or not", () => {
    const faults = {
      "rules.0.exact.extract": "no pattern",
      "rules.1.pattern": "no group",
      "rules.1": "too slow",
      lr: "x",
    };
    const inside = faultsIn(faults, "rules");
    const [exact, regex] = rules.items as [ItemKind, ItemKind];
    expect(itemFaults(inside, 0, exact)).toEqual({ extract: "no pattern" });
    expect(itemFaults(inside, 1, regex)).toEqual({ pattern: "no group", "": "too slow" });
    expect(itemFaults({ "0.exact": "of all of it" }, 0, exact)).toEqual({ "": "of all of it" });
    expect(itemFaults({ "10.pattern": "another" }, 1, regex)).toEqual({});
  });

  it("are read an item a line, without what is not set", () => {
    const text = inWords([
      { kind: "exact", weight: 2, extract: null },
      { kind: "regex", pattern: "a" },
    ]);
    expect(text).toBe("exact: weight 2\nregex: pattern a");
    expect(inWords({ rank: 8, inner: { a: 1e-6 } })).toBe("rank 8, inner (a 1e-6)");
    expect([inWords([0.5, 2]), inWords([]), inWords(null), inWords(false)]).toEqual([
      "0.5, 2",
      "none",
      "none",
      "false",
    ]);
  });

  it("may hold single values", () => {
    const [one] = weights.items![0]!.fields as [Field];
    expect(withText(one, "", "0.5")).toBe(0.5);
    expect(read(weights, "[0.5, 0]")).toEqual({ value: [0.5, 0] });
    expect(read(weights, '[""]')).toEqual({ error: "item 1 is not complete" });
    expect(read(weights, "")).toEqual({ value: null });
  });
});

describe("a form from a schema", () => {
  const fields = fieldsOf(SCHEMA);
  const field = (name: string) => fields.find((one) => one.name === name)!;

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

  it("reads what people type and reports what is wrong", () => {
    expect(read(field("lr"), " 1e-5 ")).toEqual({ value: 1e-5 });
    expect(read(field("lr"), "fast")).toEqual({ error: "not a number" });
    expect(read(field("lr"), "2")).toEqual({ error: "at most 1" });
    expect(read(field("max_steps"), "")).toEqual({ value: null });
    expect(read(field("max_steps"), "1.5")).toEqual({ error: "not a whole number" });
    expect(read(field("source"), "")).toEqual({ error: "needed" });
    expect(read(field("parts"), "[{]")).toEqual({ error: "not JSON" });
  });

  it("leaves out what is empty and has its default on the server", () => {
    expect(changed(fields, { source: "x", decoding: "" })).toEqual({ values: { source: "x" }, errors: {} });
    expect(changed(fields, { source: "x", decoding: '{"n": 2}' }).values).toMatchObject({
      decoding: { n: 2 },
    });
  });

  const nested = fieldsOf({
    $defs: SCHEMA.$defs,
    properties: {
      lr: SCHEMA.properties.lr,
      lora: { anyOf: [{ $ref: "#/$defs/Lora" }, { type: "null" }], default: null },
      decoding: { $ref: "#/$defs/Lora" },
    },
  });

  it("asks for the fields of an object by themselves, and for an optional one by a switch", () => {
    expect(nested.map((one) => one.name)).toEqual([
      "lr",
      "lora",
      "lora.rank",
      "lora.merge",
      "decoding.rank",
      "decoding.merge",
    ]);
    expect(asked(nested, {}).map((one) => one.name)).not.toContain("lora.rank");
    expect(asked(nested, { lora: "true" }).map((one) => one.name)).toContain("lora.rank");
    expect(changed(nested, { "lora.rank": "0" })).toEqual({ values: {}, errors: {} });
    expect(changed(nested, { lora: "true" }).values).toEqual({ lora: {} });
    expect(changed(nested, { lora: "true", "lora.rank": "4", "decoding.merge": "false" }).values).toEqual({
      lora: { rank: 4 },
      decoding: { merge: false },
    });
    expect(changed(nested, { lora: "true", "lora.rank": "0" }).errors).toEqual({ "lora.rank": "at least 1" });
  });

  it("shows a config that is there, its objects too", () => {
    const texts = textsOf(nested, { lr: 1e-5, lora: { rank: 4, merge: false }, decoding: { rank: 2 } });
    expect(texts).toEqual({
      lr: "1e-5",
      lora: "true",
      "lora.rank": "4",
      "lora.merge": "false",
      "decoding.rank": "2",
    });
    expect(textsOf(nested, { lora: null })).toEqual({ lora: "false" });
    expect(changed(nested, texts).values).toEqual({
      lr: 1e-5,
      lora: { rank: 4, merge: false },
      decoding: { rank: 2 },
    });
  });

  it("shows a small number as it was written", () => {
    expect(show(5e-6)).toBe("5e-6");
    expect(show(null)).toBe("");
    expect(show(128)).toBe("128");
  });

  it("sends only what differs from the defaults", () => {
    const { values, errors } = changed(fields, {
      source: "random:tiny-llama",
      lr: "5e-6",
      scale: "quantile",
    });
    expect(errors).toEqual({});
    expect(values).toEqual({ source: "random:tiny-llama", scale: "quantile" });
  });
});
