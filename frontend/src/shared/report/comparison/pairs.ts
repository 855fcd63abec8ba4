import type { Schemas } from "../../../api/client";

export type Pair = Schemas["PairRow"];
type Estimate = Schemas["Estimate"];

/** The row of two entrants as seen from `a`, or nothing where no item compares them. */
export function pairOf(pairs: Pair[], a: string, b: string): Pair | undefined {
  const row = pairs.find((one) => (one.a === a && one.b === b) || (one.a === b && one.b === a));
  return row && (row.a === a ? row : turned(row));
}

/** Names every field, so that one with a side cannot be left as it is by mistake. */
function turned(row: Pair): { [Field in keyof Required<Pair>]: Pair[Field] } {
  return {
    a: row.b,
    b: row.a,
    wins: row.losses,
    ties: row.ties,
    losses: row.wins,
    win_rate: mirrored(row.win_rate, 1),
    difference: row.difference && mirrored(row.difference, 0),
    length_matched: row.length_matched && mirrored(row.length_matched, 1),
    length_adjusted: row.length_adjusted && mirrored(row.length_adjusted, 1),
    p: row.p,
    p_holm: row.p_holm,
    significant: row.significant,
  };
}

/** The estimate of `around` less what was estimated, its interval turned with it. */
export function mirrored(found: Estimate, around: number): Estimate {
  const turn = (value: number | null | undefined) =>
    value === null || value === undefined ? null : around - value;
  return { n: found.n, value: turn(found.value), low: turn(found.high), high: turn(found.low) };
}

/** The colour of a share of wins: none at a half, the deeper the further from it. */
export function shadeOf(share: number): string {
  const depth = Math.round(Math.abs(share - 0.5) * 60);
  const colour = share >= 0.5 ? "teal" : "orange";
  return `color-mix(in srgb, var(--mantine-color-${colour}-filled) ${depth}%, transparent)`;
}
