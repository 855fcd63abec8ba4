import { describe, expect, it } from "vitest";
import { asked, changed, textsOf } from "./configValues";
import { SCHEMA } from "./exampleSchemas";
import { fieldsOf } from "./schemaFields";

describe("a config in a form", () => {
  const fields = fieldsOf(SCHEMA);

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
