import { expect, it } from "vitest";
import type { Comparison } from "../../api/models/playground";
import { bodyOf, draftOf, firstDraft, targetOf, targetsOf } from "./draft";

const model = (name: string, role: string, info: object = {}, hash = name) =>
  ({ id: name, name, role, content_hash: hash, info, stage: null, answers: role !== "reward" }) as never;

const attribute = { name: "rm_score", low: -5, high: 5, step: 0.1, decimals: 2, default: 5 };
const steerable = { condition: { attributes: [attribute] }, normaliser: { reward_model_hash: "r1" } };

it("shows the steerable policy at 5.0, 0 and -5.0, scored by the reward model of its labels", () => {
  const models = [
    model("judge", "reward", {}, "r2"),
    model("sft", "sft"),
    model("dt", "policy", steerable),
    model("reward", "reward", {}, "r1"),
  ];
  const draft = firstDraft(targetsOf(models, []), models);
  expect(draft.columns.map(({ target, score }) => [target, score])).toEqual([
    ["model:dt", 5],
    ["model:dt", 0],
    ["model:dt", -5],
  ]);
  expect(draft.reward).toBe("reward");
});

it("scores a policy of other labels by the newest reward model of its family", () => {
  const trained = (name: string, role: string, parent: string, info: object = {}) => ({
    ...(model(name, role, info) as object),
    parent_id: parent,
  });
  const models = [
    trained("newest", "reward", "other"),
    trained("newer", "reward", "base"),
    trained("older", "reward", "base"),
    trained("dt", "policy", "sft", { condition: steerable.condition }),
    trained("sft", "sft", "base"),
    model("base", "base"),
  ] as never;
  expect(firstDraft(targetsOf(models, []), models).reward).toBe("newer");
});

it("asks a model without scores once, and without a score", () => {
  const models = [model("sft", "sft")];
  expect(firstDraft(targetsOf(models, []), models).columns).toMatchObject([
    { target: "model:sft", score: null },
  ]);
});

it("asks a policy of several attributes once, for its default", () => {
  const attributes = [
    { ...attribute, name: "helpfulness", default: 4 },
    { ...attribute, name: "verbosity" },
  ];
  const models = [model("steered", "policy", { condition: { attributes } })];
  expect(firstDraft(targetsOf(models, []), models).columns).toMatchObject([
    { target: "model:steered", score: "helpfulness:4,verbosity:5" },
  ]);
});

it("asks again for exactly what a comparison had", () => {
  const comparison = {
    prompt: [
      { role: "system", content: "Be kind." },
      { role: "user", content: "Hi" },
    ],
    seed: 7,
    reward_model: { id: "1", name: "reward" },
    columns: [
      {
        place: 0,
        model: { id: "m", name: "a:b" },
        endpoint: null,
        score: 2.5,
        decoding: { temperature: 0.7, top_p: 0.9 },
      },
      {
        place: 1,
        model: null,
        endpoint: { id: "e", name: "v" },
        score: null,
        decoding: { max_new_tokens: 9 },
      },
    ],
  } as unknown as Comparison;
  expect(bodyOf(draftOf(comparison))).toEqual({
    prompt: comparison.prompt,
    columns: [
      { model: "a:b", score: 2.5, decoding: { temperature: 0.7, top_p: 0.9 } },
      { endpoint: "v", score: null, decoding: { temperature: 0, top_p: 1, max_new_tokens: 9 } },
    ],
    reward: "reward",
    seed: 7,
  });
});

it("keeps the name of what has been deleted since", () => {
  const answer = { model: null, endpoint: null, name: "demo.dt" } as never;
  expect(targetOf(answer)).toBe("model:demo.dt");
});
