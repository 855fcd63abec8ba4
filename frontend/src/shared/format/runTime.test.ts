import { describe, expect, it } from "vitest";
import { pipelineTime, timeTaken } from "./runTime";

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const run = { started_at: at(100), ended_at: null, paused_seconds: 0, paused_since: null };

describe("the time a run takes", () => {
  it("counts while it runs and stops with it", () => {
    expect(timeTaken({ ...run, started_at: null }, 160_000)).toBeNull();
    expect(timeTaken(run, 160_000)).toBe(60);
    expect(timeTaken({ ...run, ended_at: at(130) }, 160_000)).toBe(30);
  });
  it("does not count while it is paused, and leaves pauses out", () => {
    expect(timeTaken({ ...run, paused_since: at(110) }, 160_000)).toBe(10);
    expect(timeTaken({ ...run, paused_seconds: 25 }, 160_000)).toBe(35);
    expect(timeTaken({ ...run, paused_seconds: 25, paused_since: at(150) }, 160_000)).toBe(25);
  });
});

it("counts a pipeline's time from its first start, and its wait apart", () => {
  const pipeline = { created_at: at(0), started_at: null, ended_at: null };
  expect(pipelineTime(pipeline, 90_000)).toEqual({ took: null, waits: 90 });
  expect(pipelineTime({ ...pipeline, started_at: at(60) }, 90_000)).toEqual({ took: 30, waits: null });
  expect(pipelineTime({ ...pipeline, started_at: at(60), ended_at: at(80) }, 90_000)).toEqual({
    took: 20,
    waits: null,
  });
});

it("gives a pipeline that was cancelled in the queue no time at all", () => {
  const cancelled = { created_at: at(0), started_at: null, ended_at: at(80) };
  expect(pipelineTime(cancelled, 90_000)).toEqual({ took: null, waits: null });
});
