import { expect, it } from "vitest";
import { layered, withoutShortcuts } from "./graph";

const SIZES = { node: 50, lane: 4, gap: 18 };
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
    SIZES,
  );
  const column = Object.fromEntries(nodes.map((node) => [node.id, node.column]));
  expect(column).toEqual({ base: 0, sft: 1, reward: 2, dt: 3, report: 4 });
  expect(columns).toBe(5);
});

it("gives nodes of one column rows of their own and ends on a cycle", () => {
  const { nodes } = layered(["a", "b", "c"], [edge("a", "b"), edge("a", "c"), edge("c", "a")], SIZES);
  const places = nodes.map((node) => `${node.column}/${node.y}`);
  expect(new Set(places).size).toBe(3);
});

it("ignores edges from what is not shown", () => {
  const { nodes, routes } = layered(["a"], [edge("gone", "a")], SIZES);
  expect([nodes, routes]).toEqual([[{ id: "a", column: 0, y: 0 }], []]);
});

it("leads no edge behind a node", () => {
  const ids = ["base", "answers", "graded", "pairs", "reward", "labelled", "mle", "dt", "dpo", "report"];
  const edges = [
    edge("base", "answers"),
    edge("answers", "graded"),
    edge("graded", "pairs"),
    edge("pairs", "reward"),
    edge("answers", "labelled"),
    edge("reward", "labelled"),
    edge("labelled", "mle"),
    edge("labelled", "dt"),
    edge("pairs", "dpo"),
    edge("base", "dpo"),
    ...["mle", "dt", "dpo", "base", "reward"].map((id) => edge(id, "report")),
  ];
  const { nodes, routes, height } = layered(ids, edges, SIZES);
  const crossings = routes.flatMap((route) => route.crossings);
  expect(crossings.length).toBeGreaterThan(10);
  for (const { column, y } of crossings) {
    const behind = nodes.filter(
      (node) => node.column === column && y > node.y - 1 && y < node.y + SIZES.node + 1,
    );
    expect(behind).toEqual([]);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThanOrEqual(height);
  }
});

it("draws equal edges once", () => {
  expect(layered(["a", "b"], [edge("a", "b"), edge("a", "b")], SIZES).routes).toHaveLength(1);
});

it("leaves out what a longer path implies, and nothing else", () => {
  const edges = [edge("sft", "reward"), edge("reward", "dt"), edge("sft", "dt"), edge("sft", "mix")];
  expect(withoutShortcuts(edges)).toEqual([edge("sft", "reward"), edge("reward", "dt"), edge("sft", "mix")]);
});
