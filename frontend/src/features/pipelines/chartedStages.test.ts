import { expect, test } from "vitest";
import type { Run } from "../../api/runs/runs";
import { chartedStages } from "./chartedStages";

function stage(name: string, method: string | null, state: Run["state"], started: string | null = null): Run {
  return { name, method, state, started_at: started, reused_from_id: null } as Run;
}

const ended = [
  stage("tune", "a", "succeeded", "2026-01-01T01"),
  stage("answers", null, "succeeded", "2026-01-01T02"),
  stage("first", "b", "succeeded", "2026-01-01T03"),
  stage("second", "b", "failed", "2026-01-01T04"),
];

test("what trains now comes first, however much has ended", () => {
  expect(chartedStages([...ended, stage("third", "b", "running", "2026-01-01T05")])).toEqual(["third"]);
});

test("stages of the method that was last begun share charts", () => {
  expect(chartedStages([...ended, stage("label", null, "running", "2026-01-01T05")])).toEqual([
    "first",
    "second",
  ]);
  expect(chartedStages(ended)).toEqual(["first", "second"]);
});

test("before anything has begun it is the first that will train", () => {
  expect(chartedStages([stage("answers", null, "running"), stage("tune", "a", "pending")])).toEqual(["tune"]);
  expect(chartedStages([stage("answers", null, "running")])).toEqual([]);
});
