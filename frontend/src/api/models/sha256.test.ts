import { createHash } from "node:crypto";
import { Blob as FileLike } from "node:buffer";
import { describe, expect, it } from "vitest";
import { hashOf, Sha256 } from "./sha256";

const bytes = (length: number) => Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8)) & 255);
const theirs = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");

describe("SHA-256", () => {
  it("is that of Node for every length around its blocks", () => {
    for (let length = 0; length < 200; length++) {
      const hash = new Sha256();
      hash.update(bytes(length));
      expect(hash.digest()).toBe(theirs(bytes(length)));
    }
  });

  it("does not depend on how the content comes", () => {
    const hash = new Sha256();
    for (let at = 0, step = 1; at < 10_000; at += step, step = (step * 3) % 251)
      hash.update(bytes(10_000).subarray(at, at + step));
    expect(hash.digest()).toBe(theirs(bytes(10_000)));
  });

  it("reads a file and reports how far it is", async () => {
    const content = new FileLike([bytes(100_000)]);
    let read = 0;
    const found = await hashOf(content as unknown as Blob, (n) => (read += n), new AbortController().signal);
    expect([found, read]).toEqual([theirs(bytes(100_000)), 100_000]);
  });
});
