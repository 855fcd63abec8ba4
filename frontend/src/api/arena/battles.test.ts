import { expect, it } from "vitest";
import { type Battle, withChange } from "./battles";

it("puts what a side has gained into its turn, and starts over where the stream does", () => {
  const side = (text: string) => ({ state: "running" as const, text, cut: false });
  const battle = {
    id: "b",
    arena: "a",
    category: null,
    waits_for: "a worker",
    vote: null,
    created_at: "",
    turns: [
      { prompt: "One?", sides: [side("old"), side("old"), side("old")] },
      { prompt: "Two?", sides: [side(""), side("Hel"), side("")] },
    ],
  } as Battle;
  const grown = withChange(battle, 2, { side: "b", at: 3, text: "lo", state: "succeeded", cut: true });
  expect(grown.turns[1]!.sides.map((one) => one.text)).toEqual(["", "Hello", ""]);
  expect(grown.turns[1]!.sides[1]).toEqual({ state: "succeeded", text: "Hello", cut: true });
  expect(grown.turns[0]).toEqual(battle.turns[0]);
  expect(grown.waits_for).toBeNull();
  const again = withChange(grown, 2, { side: "b", at: 0, text: "By", state: "running", cut: false });
  expect(again.turns[1]!.sides[1]!.text).toBe("By");
});
