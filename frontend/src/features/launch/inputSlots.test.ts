import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { asksEndpoints, firstSlot, keysOf, missingOf } from "./inputSlots";

const slot = (name: string, type: "dataset" | "model", many = false) => ({
  name,
  type,
  many,
  required: true,
});
const kind = (config: object, ...inputs: object[]) =>
  ({ inputs, config_schema: { properties: config } }) as unknown as Schemas["RunKindOut"];

const mix = kind({ lr: {} }, slot("model", "model"), slot("data", "dataset", true));

it("has one more place than are used where a slot takes many", () => {
  const data = slot("data", "dataset", true);
  expect(keysOf(slot("model", "model"), { model: "sft" })).toEqual(["model"]);
  expect(keysOf(data, {})).toEqual(["data.0"]);
  expect(keysOf(data, { "data.0": "a", "data.1": "", model: "sft" })).toEqual(["data.0", "data.1"]);
});

it("puts what a link brought along into the first slot of its type", () => {
  expect([firstSlot(mix, "dataset"), firstSlot(mix, "model")]).toEqual(["data.0", "model"]);
  expect(firstSlot(kind({}), "dataset")).toBe("dataset");
});

it("names what must be chosen first", () => {
  expect(missingOf(mix, { model: "sft" }, {}).map((one) => one.name)).toEqual(["data"]);
  expect(missingOf(mix, { model: "sft", "data.0": "a" }, {})).toEqual([]);
});

it("needs rows of a dataset or the config that writes them out", () => {
  const asks = kind({}, { ...slot("data", "dataset"), required: false, or_field: "prompts" });
  expect(missingOf(asks, {}, {}).map((one) => one.name)).toEqual(["data"]);
  expect(missingOf(asks, {}, { prompts: ["Hi"] })).toEqual([]);
  expect(missingOf(asks, { data: "asked" }, {})).toEqual([]);
});

it("knows whether an endpoint may replace the model", () => {
  expect([asksEndpoints(kind({ endpoint: {} })), asksEndpoints(mix)]).toEqual([true, false]);
});
