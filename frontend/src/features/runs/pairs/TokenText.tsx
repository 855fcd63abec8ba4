import type { PairRead } from "../../../api/runs/pairs";
import { signed } from "../../../shared/format/format";

/**
 * An answer, each token on a ground that shows its log-ratio, or another figure of it in `unit`: teal for likelier than
 * before, red for less likely.
 */
export function TokenText({
  tokens,
  most,
  unit = "nats",
}: {
  tokens: PairRead["chosen"];
  most: number;
  unit?: string;
}) {
  return (
    <pre className="text">
      {tokens.map(({ text, log_ratio }, at) => (
        <span
          key={at}
          title={`${signed(log_ratio)} ${unit}`.trim()}
          style={{ background: ground(log_ratio, most) }}
        >
          {text}
        </span>
      ))}
    </pre>
  );
}

/** `most`: the log-ratio that gets the full colour. */
function ground(ratio: number, most: number): string | undefined {
  const strength = Math.round(Math.min(1, Math.abs(ratio) / (most || 1)) * 26);
  if (!strength) return undefined;
  const colour = ratio > 0 ? "teal" : "red";
  return `color-mix(in srgb, var(--mantine-color-${colour}-5) ${strength}%, transparent)`;
}
