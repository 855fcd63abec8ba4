import { describe, expect, it } from "vitest";
import { fieldsOf } from "../../shared/forms/schemaFields";
import { isFound, topicsOf } from "./settingTopics";

const FIELDS = fieldsOf({
  properties: {
    lr: { type: "number", description: "Learning rate at its peak.", topic: "Optimiser" },
    lora: {
      anyOf: [{ $ref: "#/$defs/Lora" }, { type: "null" }],
      default: null,
      description: "Low-rank adapters.",
      topic: "Parameters trained",
    },
    max_steps: { type: "integer", description: "Optimiser steps to stop after.", topic: "Optimiser" },
    odd: { type: "integer" },
  },
  $defs: { Lora: { type: "object", properties: { rank: { type: "integer", description: "Columns." } } } },
});

describe("the settings of a run", () => {
  it("are grouped by topic, with what a field holds", () => {
    expect(topicsOf(FIELDS).map(({ name, fields }) => [name, fields.map((field) => field.name)])).toEqual([
      ["Optimiser", ["lr", "max_steps"]],
      ["Parameters trained", ["lora", "lora.rank"]],
      ["Method", ["odd"]],
    ]);
  });

  it.each([
    ["RATE peak", ["lr"]],
    ["max steps", ["max_steps"]],
    ["lora.r", ["lora.rank"]],
    ["optimiser", ["max_steps"]],
    ["", ["lr", "lora", "lora.rank", "max_steps", "odd"]],
    ["nothing", []],
  ])("are found by %j", (typed, names) => {
    expect(FIELDS.filter((field) => isFound(field, typed)).map((field) => field.name)).toEqual(names);
  });
});
