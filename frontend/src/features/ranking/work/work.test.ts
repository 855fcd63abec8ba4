import { beforeEach, describe, expect, it } from "vitest";
import type { Task } from "../../../api/evaluation/ranking";
import { begun, criteriaOf, draftOf, drop, EMPTY, keep, load } from "./work";

const SPAN = { key: "A", turn: 1, start: 0, end: 2, label: "unsafe", note: null };

const task = (draft: Task["draft"] = null): Task => ({
  id: "t1",
  task_type: "ranking",
  prompt: { messages: [{ role: "user", content: "Why?" }], follow_ups: [] },
  answers: [
    { key: "A", turns: ["So."] },
    { key: "B", turns: ["Because."] },
  ],
  criteria: [],
  questions: [],
  span_labels: [],
  suggestion: null,
  draft,
  locked_until: "2030-01-01T00:00:00Z",
});

describe("work on a task", () => {
  beforeEach(() => localStorage.clear());

  it("is what this browser kept, else what the server has", () => {
    const said = {
      comment: "hm",
      flag: "a secret",
      scores: { truth: { A: 4 } },
      correction: "so",
      replies: { Language: "English" },
      spans: [SPAN],
    };
    const kept = task({ ranks: { A: 1 }, criteria_ranks: { style: { B: 1 } }, both_bad: true, ...said });
    expect(load(kept)).toEqual({
      ...EMPTY,
      levels: { "": { A: 1 }, style: { B: 1 } },
      bothBad: true,
      ...said,
    });
    const mine = { ...EMPTY, levels: { "": { A: 2, B: 1 } }, comment: "", flag: "odd", seconds: 7 };
    keep("t1", mine);
    expect(begun("t1")).toBe(true);
    expect(load(kept)).toEqual(mine);
    drop("t1");
    expect(begun("t1")).toBe(false);
    expect(load(task())).toEqual(EMPTY);
  });

  it("does not fail at what another version left in the storage", () => {
    localStorage.setItem("steerboard.ranking.t1", "{not json");
    expect(load(task())).toEqual(EMPTY);
    localStorage.setItem("steerboard.ranking.t1", '{"comment": "old"}');
    expect(load(task())).toEqual({ ...EMPTY, comment: "old" });
  });

  it("goes to the server with criteria apart from the one overall ranking", () => {
    const levels = { "": { A: 1 }, style: { A: 2, B: 1 } };
    expect(draftOf({ ...EMPTY, levels })).toEqual({
      ranks: { A: 1 },
      criteria_ranks: { style: { A: 2, B: 1 } },
      replies: {},
      scores: {},
      both_bad: false,
      correction: null,
      comment: null,
      flag: null,
      spans: [],
      suggestion_visible: null,
    });
    expect(draftOf({ ...EMPTY, scores: { truth: { A: 3 } } }).scores).toEqual({ truth: { A: 3 } });
    expect(draftOf({ ...EMPTY, flag: " odd " }).flag).toBe("odd");
    expect(draftOf({ ...EMPTY, levels: { "": {} } }).ranks).toBeNull();
  });

  it("remembers that a suggestion was in sight", () => {
    expect(draftOf({ ...EMPTY, suggested: true }).suggestion_visible).toBe(true);
    expect(load(task({ ...draftOf(EMPTY), suggestion_visible: true })).suggested).toBe(true);
    expect(load(task({ ...draftOf(EMPTY), suggestion_visible: false })).suggested).toBe(false);
  });

  it("is one ranking without a name where there are no criteria", () => {
    expect(criteriaOf(task())).toEqual([{ name: "", description: "" }]);
    expect(criteriaOf({ ...task(), criteria: [{ name: "style", description: "" }] })).toHaveLength(1);
  });
});
