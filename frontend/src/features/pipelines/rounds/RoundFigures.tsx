import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Schemas } from "../../../api/client";
import { count, percent, seconds, short, counted } from "../../../shared/format/format";

type Round = Schemas["RoundRow"];
type Figure = Schemas["Estimate"] | null | undefined;

const UNITS = { raw: "raw", z: "z", win_rate: "win rate" };

/** What the judge of the stop rule found, where it compared answers instead of giving rewards. */
export function Decided({ round }: { round: Round }) {
  const found = round.decision;
  if (found?.units !== "win_rate") return null;
  return (
    <Line dim>
      {found.judge}: preferred on {percent(found.after.value, 0)} of {counted(found.prompts, "prompt")}
    </Line>
  );
}

export function Kept({ round }: { round: Round }) {
  const found = round.selection;
  if (!found) return <Missing />;
  const { tied = 0, equal_texts = 0, single = 0 } = found.dropped;
  const why = [
    tied && `${count(tied)} tied`,
    equal_texts && `${count(equal_texts)} of equal texts`,
    single && `${count(single)} single`,
  ].filter(Boolean);
  return (
    <>
      <Line>
        {count(found.kept_groups)} of {counted(found.groups, "prompt")}
      </Line>
      <Line dim>{why.length ? `dropped: ${why.join(", ")}` : "none dropped"}</Line>
    </>
  );
}

/** The mean rewards of what was sampled: of all answers, and of each prompt's best. */
export function Rewards({ round }: { round: Round }) {
  if (!round.selection) return <Missing />;
  return (
    <>
      <Line>mean {value(round.selection.mean)}</Line>
      <Line>best {value(round.selection.best)}</Line>
      {round.selection.units !== "raw" && (
        <Line dim>
          {UNITS[round.selection.units]} by {round.selection.reward}
        </Line>
      )}
    </>
  );
}

export function Lengths({ round }: { round: Round }) {
  const tokens = round.answers?.tokens?.value;
  const characters = round.selection?.characters;
  if (tokens == null && characters == null) return <Missing />;
  return (
    <>
      {tokens != null && <Line>{short(tokens)} tokens</Line>}
      {characters != null && <Line dim>samples {Math.round(characters)} characters</Line>}
    </>
  );
}

export function Cost({ round }: { round: Round }) {
  const { device_seconds, sampled_tokens, trained_tokens } = round.cost;
  return (
    <>
      <Line>{seconds(device_seconds)}</Line>
      {sampled_tokens != null && <Line dim>{counted(sampled_tokens, "token")} sampled</Line>}
      {trained_tokens != null && <Line dim>{count(trained_tokens)} trained</Line>}
    </>
  );
}

/** A share with its interval, over a scale from 0 to 100% whose middle is a draw. */
export function WinRate({ found }: { found: Figure }) {
  if (found?.value == null) return <Missing />;
  const [low, high] = [found.low ?? found.value, found.high ?? found.value];
  return (
    <>
      <Line strong>{percent(found.value, 0)}</Line>
      <svg width={104} height={10} aria-hidden className="win-rate">
        <line x1={2} x2={102} y1={5} y2={5} stroke="var(--mantine-color-default-border)" />
        <line x1={52} x2={52} y1={0} y2={10} stroke="var(--mantine-color-dimmed)" />
        <line
          x1={2 + 100 * low}
          x2={2 + 100 * high}
          y1={5}
          y2={5}
          stroke="var(--mantine-primary-color-filled)"
          strokeWidth={3}
        />
        <circle cx={2 + 100 * found.value} cy={5} r={4} fill="var(--mantine-primary-color-filled)" />
      </svg>
      <Line dim>
        {percent(low, 0)} to {percent(high, 0)}, n {count(found.n)}
      </Line>
    </>
  );
}

export function Interval({ found, unit }: { found: Figure; unit?: string }) {
  if (found?.value == null) return <Missing />;
  return (
    <>
      <Line strong>
        {value(found)} {unit}
      </Line>
      {found.low != null && found.high != null && (
        <Line dim>
          {minus(found.low)} to {minus(found.high)}
        </Line>
      )}
    </>
  );
}

function Line({ children, dim, strong }: { children: ReactNode; dim?: boolean; strong?: boolean }) {
  return (
    <Text
      size={dim ? "xs" : "sm"}
      c={dim ? "dimmed" : undefined}
      fw={strong ? 600 : undefined}
      style={{ whiteSpace: "nowrap" }}
    >
      {children}
    </Text>
  );
}

const Missing = () => (
  <Text size="xs" c="dimmed">
    not measured
  </Text>
);

const minus = (of: number) => short(of).replace("-", "−");
const value = (found: Figure) => (found?.value == null ? "–" : minus(found.value));
