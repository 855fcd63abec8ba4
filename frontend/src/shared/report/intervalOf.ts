import { signed } from "../format/format";

interface Row {
  reward_low: number | null;
  reward_high: number | null;
}

/** `+0.10 to +0.50`; of fewer than 8 prompts there is none. */
export function intervalOf({ reward_low: low, reward_high: high }: Row): string {
  return low === null || high === null ? "too few prompts" : `${signed(low)} to ${signed(high)}`;
}
