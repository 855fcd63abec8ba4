import { describe, expect, it } from "vitest";
import { asked, changed, fieldsOf, read, show, textsOf } from "./schemaForm";

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
