import { expect, it } from "vitest";
import { differences } from "./differences";

it("shows what differs, and what only some runs have", () => {
  const rows = differences([
    { lr: 1e-3, batch: 16, data: "a" },
    { lr: 2e-3, batch: 16, data: "a", beta: null },
  ]);
  expect(rows.map((row) => [row.name, ...row.values])).toEqual([
    ["beta", "–", "none"],
    ["lr", "0.001", "0.002"],
  ]);
  expect(differences([{ a: 1 }, { a: 1 }], true)).toEqual([
    { name: "a", values: ["1", "1"], differs: false },
  ]);
});
