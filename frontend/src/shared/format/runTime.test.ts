import { describe, expect, it } from "vitest";
import { timeTaken } from "./runTime";

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
