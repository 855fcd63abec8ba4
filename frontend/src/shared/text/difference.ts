import { diffWordsWithSpace } from "diff";

export interface Part {
  text: string;
  /** Occurs on this side only. */
  own: boolean;
}

// Two long texts that share little take longer than anyone waits; then both sides are shown plain.
const LONGEST_MS = 200;

/** Two texts, each cut into what it shares with the other and what is its own. */
export function differences(a: string, b: string): [Part[], Part[]] {
  const parts = diffWordsWithSpace(a, b, { timeout: LONGEST_MS });
  if (!parts) return [[{ text: a, own: false }], [{ text: b, own: false }]];
  const side = (other: "added" | "removed", own: "added" | "removed") =>
    parts.filter((part) => !part[other]).map((part) => ({ text: part.value, own: !!part[own] }));
  return [side("added", "removed"), side("removed", "added")];
}
