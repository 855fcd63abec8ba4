import { expect, it } from "vitest";
import { differences } from "./differences";

it("takes equal inputs for equal, whatever their names are", () => {
  const names = [{ "input data": "demo-1.labelled" }, { "input data": "demo-2.labelled" }];
  const same = [{ "input data": "abc" }, { "input data": "abc" }];
  expect(differences(names, false, same)).toEqual([]);
  expect(differences(names, true, same)[0]!.differs).toBe(false);
  expect(differences(names, false, [same[0]!, { "input data": "other" }])[0]!.differs).toBe(true);
});

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
