import { describe, expect, it } from "vitest";
import {
  bytes,
  compact,
  counted,
  figure,
  listed,
  percent,
  result,
  seconds,
  short,
  signed,
  ticks,
} from "./format";

describe("numbers with units", () => {
  it("shows a result that counts bytes in bytes", () => {
    expect(result("memory_peak", 1_523_000_000)).toBe("1.5 GB");
    expect(result("steps", 1500)).toBe("1,500");
  });
  it("keeps the numbers of an axis apart", () => {
    expect(ticks([3.52, 3.5205, 3.521])).toEqual(["3.52", "3.5205", "3.521"]);
    expect(ticks([0, 0.5, 1, 1.5])).toEqual(["0", "0.5", "1", "1.5"]);
    expect(ticks([2e-6, 4e-6])).toEqual(["2.0e-6", "4.0e-6"]);
  });
  it("writes many parameters in a few characters", () => {
    expect([134_515_008, 1_234_567, 1000].map(compact)).toEqual(["135M", "1.23M", "1,000"]);
  });
  it("formats time as people do", () => {
    expect([0.04, 9.96, 61, 411.4, 3599.6, 7260].map((value) => seconds(value))).toEqual([
      "0.0 s",
      "10.0 s",
      "61 s",
      "6 min 51 s",
      "1 h 0 min",
      "2 h 1 min",
    ]);
    expect(seconds(null)).toBe("–");
  });

  it("writes signs that can be read, and no minus zero", () => {
    expect([signed(-1.914), signed(0.2), signed(-0.001), signed(null)]).toEqual([
      "−1.91",
      "0.20",
      "0.00",
      "–",
    ]);
  });

  it("shows what rounding leaves of zero as zero", () => {
    expect([short(-2.1e-17), short(-0), figure(4e-16), short(1e-9)]).toEqual(["0", "0", "0", "1.0e-9"]);
  });

  it("keeps small and large numbers short", () => {
    expect([short(0.00000123), short(0.25), short(1234567), short(12), short(0)]).toEqual([
      "1.2e-6",
      "0.25",
      "1.2e6",
      "12",
      "0",
    ]);
    // Zeros before the point are not decoration.
    expect([short(1100.4), short(99.97), short(12000.7), short(120.04)]).toEqual([
      "1100",
      "100",
      "12000",
      "120",
    ]);
    expect([figure(113700), figure(0.12575)]).toEqual(["113,700", "0.126"]);
    expect([bytes(999), bytes(1500), bytes(6_300_000)]).toEqual(["999 B", "1.5 kB", "6.3 MB"]);
    expect(percent(0.9656)).toBe("96.6%");
  });

  it("lists names as people do", () => {
    expect([[], ["a"], ["a", "b"], ["a", "b", "c"]].map(listed)).toEqual(["", "a", "a and b", "a, b and c"]);
  });

  it("names one thing in the singular and any other number of them in the plural", () => {
    expect([0, 1, 2, 1234].map((n) => counted(n, "vote"))).toEqual([
      "0 votes",
      "1 vote",
      "2 votes",
      "1,234 votes",
    ]);
  });
});
