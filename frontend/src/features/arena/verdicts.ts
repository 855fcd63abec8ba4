import type { Verdict } from "../../api/arena/battles";

/** In the order of the buttons, each with the key that presses it. */
export const VERDICTS: readonly { verdict: Verdict; label: string; key: string; said: string }[] = [
  { verdict: "a", label: "A is better", key: "A", said: "A is better" },
  { verdict: "tie", label: "Tie", key: "T", said: "a tie" },
  { verdict: "both_bad", label: "Both are bad", key: "X", said: "both are bad" },
  { verdict: "b", label: "B is better", key: "B", said: "B is better" },
];

export const saidOf = (verdict: Verdict) => VERDICTS.find((one) => one.verdict === verdict)!.said;
