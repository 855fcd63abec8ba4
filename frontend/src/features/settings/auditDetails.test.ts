import { expect, it } from "vitest";
import { factsOf } from "./auditDetails";

const said = (details: Record<string, unknown>) =>
  factsOf(details).map(({ name, value }) => `${name}: ${value}`);

it("lists a run's inputs before its settings, and neither as JSON", () => {
  const details = { config: { lr: 0.001, max_steps: 50, template: null }, inputs: { model: "base" } };
  expect(said(details)).toEqual(["inputs · model: base", "config · lr: 0.001", "config · max steps: 50"]);
});

it("reads lists, truths and lists of things as words", () => {
  expect(said({ scopes: ["read", "run"], has_key: true, note: "", inputs: {} })).toEqual([
    "scopes: read, run",
    "has key: yes",
  ]);
  expect(said({ parts: [{ data: "a", share: 0.5 }] })).toEqual(["parts: data a, share 0.5"]);
});
