import type { Verdict } from "../../api/evaluation/judges";
import { signed } from "../../shared/format/format";

/** What a verdict comes to; a pair's value is the share of `a`. */
export function verdictText({ a, b, value, weight }: Pick<Verdict, "a" | "b" | "value" | "weight">): string {
  if (value === null) return "–";
  if (b === null) return signed(value, Number.isInteger(value) ? 0 : 1);
  const times = weight > 1 ? `, counts ${weight} times` : "";
  if (value === 0.5) return `tie${times}`;
  if (value === 0 || value === 1) return `${value ? a : b} wins${times}`;
  return `${a} ${signed(value)}${times}`;
}
