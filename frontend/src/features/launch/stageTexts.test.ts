import { describe, expect, it } from "vitest";
import { fieldsOf } from "../../shared/forms/schemaFields";
import { setText, shownFirst, shownTexts } from "./stageTexts";

const FIELDS = fieldsOf({
  properties: {
    run: { const: "train" },
    lr: { type: "number", default: 1e-5 },
    max_steps: { anyOf: [{ type: "integer" }, { type: "null" }], default: null },
    shuffle: { type: "boolean", default: true },
    seed: { type: "integer", default: 0 },
    lora: {
      anyOf: [{ type: "object", properties: { rank: { type: "integer", default: 8 } } }, { type: "null" }],
      default: null,
    },
  },
});
const CONFIG = { run: "train", lr: 2e-5, max_steps: 40, shuffle: true, seed: 0, lora: null };
const field = (name: string) => FIELDS.find((one) => one.name === name)!;

describe("the settings of a stage", () => {
  it("show what was typed over what the recipe gives", () => {
    expect(shownTexts(FIELDS, CONFIG, { lr: "1e-4" })).toMatchObject({
      lr: "1e-4",
      max_steps: "40",
      shuffle: "true",
      lora: "false",
    });
  });

  it("stay empty where they were emptied", () => {
    expect(shownTexts(FIELDS, CONFIG, { lr: "" }).lr).toBe("");
    expect(shownTexts(FIELDS, CONFIG, { max_steps: "null" }).max_steps).toBe("");
  });

  it("say in YAML that there is no value, and turn a group on and off", () => {
    expect(setText(field("max_steps"), "")).toBe("null");
    expect(setText(field("lr"), "")).toBe("");
    expect(setText(field("lora"), "true")).toBe("{}");
    expect(setText(field("lora"), "false")).toBe("null");
    expect(shownTexts(FIELDS, CONFIG, { lora: "{}", "lora.rank": "4" })).toMatchObject({
      lora: "true",
      "lora.rank": "4",
    });
  });

  it("begin with those that the recipe changed, then the main ones", () => {
    const texts = shownTexts(FIELDS, CONFIG, { seed: "3" });
    expect(shownFirst(FIELDS, texts, ["shuffle", "lr"], ["seed"])).toEqual([
      "lr",
      "max_steps",
      "seed",
      "shuffle",
    ]);
  });
});
