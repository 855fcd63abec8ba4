import { expect, it } from "vitest";
import { type Battle, withChange } from "./battles";

it("puts what a side has gained into the last turn, and starts over where the stream does", () => {
  const side = (text: string) => ({ state: "running" as const, text, cut: false });
  const battle = {
    id: "b",
    arena: "a",
    category: null,
    waits_for: "a worker",
    vote: null,
    created_at: "",
    turns: [
      { prompt: "One?", a: side("old"), b: side("old") },
      { prompt: "Two?", a: side("Hel"), b: side("") },
    ],
  } as Battle;
  const grown = withChange(battle, { side: "a", at: 3, text: "lo", state: "succeeded", cut: true });
  expect(grown.turns[1]!.a).toEqual({ state: "succeeded", text: "Hello", cut: true });
  expect(grown.turns[0]).toEqual(battle.turns[0]);
  expect(grown.waits_for).toBeNull();
  const again = withChange(grown, { side: "a", at: 0, text: "By", state: "running", cut: false });
  expect(again.turns[1]!.a.text).toBe("By");
});
