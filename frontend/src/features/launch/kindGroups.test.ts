import { describe, expect, it } from "vitest";
import { type Kind, kindGroups, kindsFor } from "./kindGroups";

const kind = (key: string, title: string, about: string, allowed: string[], of = "train") =>
  ({ key, kind: of, title, about, inputs: [{ name: "data", allowed }] }) as Kind;
const KINDS = [
  kind("dpo", "Direct preference optimisation", "Raise the chosen answer.", ["preferences"]),
  kind("kto", "KTO", "From thumbs.", ["preferences", "unpaired"]),
  kind("sft", "Supervised fine-tuning", "Imitate.", ["instructions"]),
  kind("grpo", "GRPO", "Online.", ["instructions", "labelled", "preferences", "prompts"]),
  kind("own", "Own", "Of a package.", ["unpaired"]),
  kind("score", "Score", "Rewards by a model.", ["instructions"], "score"),
];
const found = (part: string) =>
  kindGroups(KINDS, part).map(({ title, kinds }) => [title, kinds.map(({ key }) => key)]);

describe("the kinds of single runs", () => {
  it("are grouped by the data that they need", () => {
    expect(found("")).toEqual([
      ["Learn from preference pairs", ["dpo", "kto"]],
      ["Learn from instructions", ["sft"]],
      ["Learn online, from prompts and rewards", ["grpo"]],
      ["Learn from other data", ["own"]],
      ["Make, grade and compare", ["score"]],
    ]);
  });

  it("begin with what is recommended", () => {
    const kto = { ...KINDS[1]!, training: { recommended: true } };
    const kinds = kindGroups([KINDS[0]!, kto], "")[0]!.kinds;
    expect(kinds.map(({ key }) => key)).toEqual(["kto", "dpo"]);
  });

  it("take a dataset with training rows, and with the field that they need", () => {
    const takes = {
      for_data: { preferences: "Train on it" },
      needs_field: { preferences: "group" },
      training: {},
    };
    const dataset = { kind: "preferences", rows: 9, held_out_rows: 3, origin: { fields: ["group"] } };
    const fits = (changed: object) => kindsFor([takes], { ...dataset, ...changed } as never).length;
    expect(
      [{}, { held_out_rows: 9 }, { origin: { fields: ["source"] } }, { kind: "prompts" }].map(fits),
    ).toEqual([1, 0, 0, 0]);
    expect(kindsFor([{ ...takes, training: null }], { ...dataset, held_out_rows: 9 } as never)).toHaveLength(
      1,
    );
  });

  it("are found by abbreviation, name and description, in any case and order of words", () => {
    expect(found("DPO")).toEqual([["Learn from preference pairs", ["dpo"]]]);
    expect(found("optimisation direct")).toEqual([["Learn from preference pairs", ["dpo"]]]);
    expect(found("thumbs")).toEqual([["Learn from preference pairs", ["kto"]]]);
    expect(found("nothing of the kind")).toEqual([]);
  });
});
