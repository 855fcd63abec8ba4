import { expect, it } from "vitest";
import { counted, newest } from "./noticeCount";

it("shows a count that the server ends at as more", () => {
  expect([0, 7, 99, 100].map(counted)).toEqual(["0", "7", "99", "99+"]);
});

it("finds the newest notice of all lists that were shown", () => {
  const list = (...ids: number[]) => [[], { pages: [{ items: ids.map((id) => ({ id })) }] }] as const;
  expect(newest([list(9, 3), list(12), [[], undefined], list()])).toBe(12);
  expect(newest([list()])).toBeNull();
});
