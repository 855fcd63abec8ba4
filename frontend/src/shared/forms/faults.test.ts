import { expect, it } from "vitest";
import { LISTS } from "./exampleSchemas";
import { faultsIn, itemFaults } from "./faults";
import { type Field, fieldsOf, type ItemKind } from "./schemaFields";

const [rules] = fieldsOf(LISTS) as [Field];

it("shows what the server found wrong at the item, whether the place names its kind or not", () => {
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
