import { expect, it } from "vitest";
import { layered, withoutShortcuts } from "./graph";

const edge = (source: string, target: string) => ({ source, target });

it("puts each node right of everything it needs", () => {
  const { nodes, columns } = layered(
    ["report", "dt", "sft", "base", "reward"],
    [
      edge("base", "sft"),
      edge("sft", "reward"),
      edge("sft", "dt"),
      edge("reward", "dt"),
      edge("dt", "report"),
      edge("sft", "report"),
    ],
  );
  const column = Object.fromEntries(nodes.map((node) => [node.id, node.column]));
  expect(column).toEqual({ base: 0, sft: 1, reward: 2, dt: 3, report: 4 });
  expect(columns).toBe(5);
});

it("gives nodes of one column rows of their own and ends on a cycle", () => {
  const { nodes } = layered(["a", "b", "c"], [edge("a", "b"), edge("a", "c"), edge("c", "a")]);
  const places = nodes.map((node) => `${node.column}/${node.row}`);
  expect(new Set(places).size).toBe(3);
});

it("ignores edges from what is not shown", () => {
  expect(layered(["a"], [edge("gone", "a")]).nodes).toEqual([{ id: "a", column: 0, row: 0 }]);
});

it("leaves out what a longer path implies, and nothing else", () => {
  const edges = [edge("sft", "reward"), edge("reward", "dt"), edge("sft", "dt"), edge("sft", "mix")];
  expect(withoutShortcuts(edges)).toEqual([edge("sft", "reward"), edge("reward", "dt"), edge("sft", "mix")]);
});
