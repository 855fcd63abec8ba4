import type { ItemsSearch } from "../../search";
import type { Estimate, Report } from "../Figure";

type Row = Report["methods"][number];

/** What may be drawn against the KL. */
export interface Measure {
  label: string;
  /** With its unit. */
  axis: string;
  percent: boolean;
  of: (row: Row) => Estimate | undefined;
  /** The reward model that mean rewards or win rates are by. */
  reward?: string;
  /** The items of one of its figures. */
  items: (entrant: string) => ItemsSearch;
}

export interface Place {
  entrant: string;
  kl: Estimate;
  value: Estimate;
  /** `kl` is an upper bound. */
  bound: boolean;
}

export interface Curve {
  label: string;
  points: { n: number; kl: number; value: number }[];
}

const RATES = {
  reward_win_rate: "reward",
  judge_win_rate: "judge",
  jury_win_rate: "jury",
  human_win_rate: "human",
} as const;
type Rate = keyof typeof RATES;

/** Rewards first, then win rates, each by every source that has some. */
export function measuresOf(report: Report): Measure[] {
  const sources = (field: "reward" | Rate) => [
    ...new Set(report.methods.flatMap((row) => Object.keys(row[field] ?? {}))),
  ];
  const units = (source: string) =>
    report.rewards.find((one) => one.reward_model === source)?.units === "z" ? "z" : "raw";
  const rewards = sources("reward").map((source) => ({
    label: `reward by ${source}`,
    axis: `mean reward by ${source} (${units(source)})`,
    percent: false,
    of: (row: Row) => row.reward[source],
    reward: source,
    items: (entrant: string) => ({ a: entrant, source: `reward:${source}` as const }),
  }));
  const rates = (Object.keys(RATES) as Rate[]).flatMap((field) =>
    sources(field).map((source) => ({
      label: `win rate by ${source}`,
      axis: `win rate against ${report.baseline ?? "the baseline"} by ${source} (%)`,
      percent: true,
      of: (row: Row) => row[field]?.[source],
      reward: field === "reward_win_rate" ? source : undefined,
      items: (entrant: string) => ({
        a: entrant,
        b: report.baseline ?? undefined,
        source: `${RATES[field]}:${source}` as const,
      }),
    })),
  );
  return [...rewards, ...rates];
}

/** Entrants with both figures. */
export function placesOf(report: Report, measure: Measure): Place[] {
  const kls = new Map((report.frontier?.entrants ?? []).map((one) => [one.entrant, one]));
  return report.methods.flatMap((row) => {
    const of = kls.get(row.entrant);
    const value = measure.of(row);
    if (!of || of.kl.value === null || value?.value == null) return [];
    return [{ entrant: row.entrant, kl: of.kl, value, bound: of.kind === "bound" }];
  });
}

/** The best of n by the reward model that the measure is by; win rates where the baseline is one more equal draw. */
export function curvesOf(report: Report, measure: Measure): Curve[] {
  return (report.frontier?.best_of_n ?? [])
    .filter((one) => one.reward_model === measure.reward)
    .filter((one) => !measure.percent || (report.baseline != null && one.alike?.includes(report.baseline)))
    .map((one) => ({
      label: `best of n of ${one.entrant}`,
      points: one.n.flatMap((n, at) => {
        const value = measure.percent ? n / (n + 1) : one.reward[at]?.value;
        return value == null ? [] : [{ n, kl: one.kl[at]!, value }];
      }),
    }));
}

/** The least and the largest of what is drawn, with some air; 0 is always within `xs`. */
export function rangeOf(values: number[]): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const air = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - air, high + air];
}

/** About `most` round numbers from `low` to `high`. */
export function ticksOf(low: number, high: number, most = 6): number[] {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? rough;
  const first = Math.ceil(low / step);
  const found = [];
  for (let at = first; at * step <= high; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}
