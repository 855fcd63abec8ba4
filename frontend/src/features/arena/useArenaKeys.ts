import { useEffect } from "react";
import type { Verdict } from "../../api/arena/battles";
import type { Choice } from "./verdicts";

const TAKEN = "input, textarea, select, [role=dialog], [role=menu], [role=listbox]";

/** Keys of the whole page, except where a key has a meaning of its own: a vote, and N for the next battle. */
export function useArenaKeys(
  choices: Choice[],
  vote: ((verdict: Verdict) => void) | null,
  next: (() => void) | null,
): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
      if (event.target instanceof HTMLElement && event.target.closest(TAKEN)) return;
      const key = event.key.toUpperCase();
      const verdict = choices.find((one) => one.key === key)?.verdict;
      if (verdict && vote) vote(verdict);
      else if (key === "N" && next) next();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [choices, vote, next]);
}
