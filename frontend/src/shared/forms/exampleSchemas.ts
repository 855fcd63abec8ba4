/** Schemas that the tests of forms share. */

export const SCHEMA = {
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
    method: { const: "toy" },
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

export const LISTS = {
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
