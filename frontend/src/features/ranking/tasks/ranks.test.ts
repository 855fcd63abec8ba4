import { describe, expect, it } from "vitest";
import {
  competitionRanks,
  dragged,
  firstOfEqual,
  inOrder,
  inWords,
  missing,
  nextUnranked,
  spread,
  tieWithAbove,
  toggleNext,
  toggleTie,
} from "./ranks";

const keys = ["A", "B", "C", "D"];

describe("ranks", () => {
  it("are submitted as competition ranks in the order shown", () => {
    expect(competitionRanks(keys, { A: 2, B: 1, C: 2, D: 7 })).toEqual([2, 1, 2, 4]);
    expect(competitionRanks(keys, { A: 5, B: 5, C: 5, D: 5 })).toEqual([1, 1, 1, 1]);
  });

  it("put unranked answers last and name them", () => {
    expect(inOrder(keys, { C: 1, A: 3 })).toEqual(["C", "A", "B", "D"]);
    expect(missing(keys, { C: 1, A: 3 })).toEqual(["B", "D"]);
    expect(nextUnranked(keys, { C: 1, A: 3 }, "D")).toBe("B");
    expect(nextUnranked(["A"], { A: 1 }, "A")).toBe("A");
  });

  it("take the next place by one touch, and lose it by another", () => {
    expect(toggleNext({}, "C")).toEqual({ C: 1 });
    expect(toggleNext({ C: 1, A: 1 }, "B")).toEqual({ C: 1, A: 1, B: 2 });
    expect(toggleNext({ C: 1, A: 2 }, "C")).toEqual({ A: 2 });
  });

  it("tie with the answer above", () => {
    expect(tieWithAbove(keys, { A: 1, B: 2, C: 3 }, "C")).toEqual({ A: 1, B: 2, C: 2 });
    expect(tieWithAbove(keys, { A: 1, B: 2 }, "D")).toEqual({ A: 1, B: 2, D: 2 });
    expect(tieWithAbove(keys, { A: 1, B: 2 }, "A")).toEqual({ A: 1, B: 2 });
    expect(tieWithAbove(keys, {}, "B")).toEqual({});
  });

  it("follow a drag and keep the ties of others", () => {
    expect(dragged(keys, { A: 1, B: 2, C: 2, D: 3 }, "A", "D")).toEqual({ B: 1, C: 1, D: 2, A: 3 });
    expect(dragged(keys, { A: 1, B: 2, C: 2, D: 3 }, "B", "A")).toEqual({ B: 1, A: 2, C: 3, D: 4 });
    expect(dragged(keys, { A: 1, B: 2, C: 2, D: 3 }, "D", "C")).toEqual({ A: 1, B: 2, D: 3, C: 4 });
  });

  it("are not given by a drag to answers that were not moved", () => {
    expect(dragged(keys, {}, "D", "A")).toEqual({ D: 1 });
    expect(dragged(keys, { D: 1 }, "B", "A")).toEqual({ D: 1, B: 2 });
    expect(dragged(keys, { D: 1, B: 2 }, "C", "A")).toEqual({ D: 1, B: 2, C: 3, A: 4 });
    expect(dragged(keys, {}, "A", "B")).toEqual({ B: 1, A: 2 });
    expect(toggleTie(keys, {}, 0)).toEqual({ A: 1, B: 1 });
  });

  it("make and undo ties between neighbours", () => {
    expect(toggleTie(keys, { A: 1, B: 2, C: 3, D: 4 }, 1)).toEqual({ A: 1, B: 2, C: 2, D: 3 });
    expect(toggleTie(keys, { A: 1, B: 2, C: 2, D: 3 }, 1)).toEqual({ A: 1, B: 2, C: 3, D: 4 });
    expect(toggleTie(keys, { A: 1, B: 1, C: 1, D: 2 }, 1)).toEqual({ A: 1, B: 1, C: 2, D: 3 });
  });

  it("read as people write them", () => {
    expect(inWords(keys, { A: 2, B: 1, C: 2, D: 3 })).toBe("B > A = C > D");
    expect(inWords(keys, { D: 1, A: 1 })).toBe("A = D");
  });

  it("are one of identical answers, which tie", () => {
    const answers = [
      { key: "A", turns: ["Yes.", "No."] },
      { key: "B", turns: ["Yes."] },
      { key: "C", turns: [" Yes.", "No.\n"] },
      { key: "D", turns: ["Yes.", "no."] },
    ];
    const first = firstOfEqual(answers);
    expect(first).toEqual({ A: "A", B: "B", C: "A", D: "D" });
    expect(spread(first, { A: 2, B: 1, D: 3 })).toEqual({ A: 2, B: 1, C: 2, D: 3 });
    expect(spread(first, { B: 1 })).toEqual({ B: 1 });
    expect(competitionRanks(Object.keys(first), spread(first, { A: 1, B: 2, D: 3 }))).toEqual([1, 3, 1, 4]);
  });
});
