import { expect, it } from "vitest";
import { answersOf, byLine, emptyEntrant, entrantsOf, messageAt, scoresOf, withModels } from "./draft";

it("reads scores however they are typed", () => {
  expect(scoresOf(["5, 0", "−5", "5", "high"])).toEqual([5, 0, -5]);
  expect(scoresOf(["a:4,b:−2", "a:1; a:2"])).toEqual(["a:4,b:-2", "a:1", "a:2"]);
});

it("enters a policy once for each of its scores, and knows which line each came from", () => {
  const sft = emptyEntrant("model", "sft");
  const dt = { ...emptyEntrant("model", "dt"), scores: ["5", "-5"], name: "steered", samples: 4 };
  const { entrants, lines } = entrantsOf([sft, emptyEntrant(), dt]);
  expect(entrants.map((one) => [one.model, one.score, one.name, one.samples])).toEqual([
    ["sft", null, null, 1],
    ["dt", 5, "steered_5", 4],
    ["dt", -5, "steered_-5", 4],
  ]);
  expect(lines).toEqual([0, 2, 2]);
  expect(answersOf([sft, dt], 10)).toBe(90);
});

it("lets an endpoint compute by itself, whatever was chosen before it was named", () => {
  const model = { ...emptyEntrant("model", "sft"), engine: "vllm" as const };
  const { entrants } = entrantsOf([model, { ...model, kind: "endpoint", who: "remote" }]);
  expect(entrants.map((one) => one.engine)).toEqual(["vllm", "transformers"]);
});

it("lets a reward model keep one of a model's answers, and none of an endpoint's", () => {
  const best = { ...emptyEntrant("model", "sft"), samples: 8, chooser: "reward" };
  const { entrants } = entrantsOf([
    best,
    { ...best, kind: "endpoint", who: "remote" },
    { ...best, chooser: null },
  ]);
  expect(entrants.map((one) => [one.samples, one.best_of, one.reward])).toEqual([
    [1, 8, "reward"],
    [8, null, null],
    [8, null, null],
  ]);
  // All eight are generated.
  expect(answersOf([best], 10)).toBe(80);
});

it("shows an entrant's error at its line", () => {
  const errors = byLine(
    [{ location: "body.entrants.1.decoding.temperature", message: "too hot" }],
    [0, 2, 2],
  );
  expect(messageAt(errors, "entrants.2.decoding")).toBe("too hot");
  expect(messageAt(errors, "entrants.1.decoding")).toBeUndefined();
});

it("adds the models of a pipeline once each, in place of lines that name no one", () => {
  const remote = emptyEntrant("endpoint", "sft");
  const entered = withModels([emptyEntrant(), emptyEntrant("model", "dt"), remote], ["sft", "dt", "rwr"]);
  expect(entered.map((one) => [one.kind, one.who])).toEqual([
    ["model", "dt"],
    ["endpoint", "sft"],
    ["model", "sft"],
    ["model", "rwr"],
  ]);
});
