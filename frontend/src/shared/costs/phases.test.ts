import { describe, expect, it } from "vitest";
import { inWords, type Ledger, phasesOf } from "./phases";

const LEDGER: Ledger = {
  phases: [
    { phase: "generate", device_seconds: 6, tokens: 1200 },
    { phase: "idle", device_seconds: 2, tokens: 0 },
  ],
  device_seconds: 8,
  failed_device_seconds: 3,
  failed_attempts: 1,
  reused: [],
  reused_device_seconds: 0,
};

describe("a ledger", () => {
  it("describes its bar in words, failed attempts apart", () => {
    expect(inWords(LEDGER)).toBe(
      "8.0 s of device time; generate 6.0 s (75%, 1,200 tokens); idle 2.0 s (25%); " +
        "3.0 s more in 1 attempt that did not succeed",
    );
    expect(inWords({ ...LEDGER, failed_attempts: 0, failed_device_seconds: 0 })).not.toContain("succeed");
  });
  it("shares its phases' order with every other", () => {
    const other = { ...LEDGER, phases: [{ phase: "load" as const, device_seconds: 1, tokens: 0 }] };
    expect(phasesOf([LEDGER, other])).toEqual(["load", "generate", "idle"]);
  });
});
