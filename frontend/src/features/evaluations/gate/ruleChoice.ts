const EVERYBODY = ["judge", "human", "reward"] as const;
const ESTIMATE = ["ci_low", "value", "ci_high", "n"] as const;
const PAIR = [...ESTIMATE, "p_holm", "p"] as const;

interface Metric {
  name: string;
  label: string;
  by?: readonly string[];
  entrant?: boolean;
  /** What it is compared with: another entrant, or any reward model, which may be left out. */
  vs?: "entrant" | "reward";
  /** It is of a reward model on a benchmark. */
  benchmark?: boolean;
  stats?: readonly string[];
  op?: string;
  value: number | false;
}

/** The metrics that most gates need; the text takes all of them. */
export const METRICS: readonly Metric[] = [
  {
    name: "win_rate",
    label: "win rate",
    by: EVERYBODY,
    entrant: true,
    vs: "entrant",
    stats: PAIR,
    value: 0.5,
  },
  {
    name: "mean_score",
    label: "mean score",
    by: EVERYBODY,
    entrant: true,
    vs: "entrant",
    stats: PAIR,
    value: 0,
  },
  {
    name: "length_ratio",
    label: "length ratio",
    entrant: true,
    vs: "entrant",
    stats: ESTIMATE,
    op: "<=",
    value: 1.5,
  },
  { name: "condition_gain", label: "gain by the score, nats", entrant: true, stats: ESTIMATE, value: 0 },
  {
    name: "reward_hacking",
    label: "reward hacking",
    entrant: true,
    vs: "entrant",
    op: "==",
    value: false,
  },
  { name: "unparsed_rate", label: "share of unusable verdicts", by: ["judge"], op: "<=", value: 0.05 },
  { name: "accuracy", label: "pair accuracy", by: ["reward"], stats: ESTIMATE, value: 0.6 },
  {
    name: "benchmark_accuracy",
    label: "accuracy on a benchmark",
    by: ["reward"],
    vs: "reward",
    benchmark: true,
    stats: ESTIMATE,
    value: 0.6,
  },
  { name: "seen_share", label: "share of prompts seen in training", op: "<=", value: 0.05 },
  { name: "held_out_changes", label: "changed held-out rows", op: "==", value: 0 },
  { name: "responses_missing", label: "missing answers", entrant: true, op: "<=", value: 0 },
];

/** What a person has chosen. `reward`: the model that a reward is compared with; `source`: the reward model itself. */
export interface Choice {
  metric: Metric;
  entrant: string | null;
  vs: string | null;
  by: string;
  source: string | null;
  reward: string | null;
  benchmark: string | null;
  stat: string;
  op: string;
  value: number | string | false;
}

/** Whose figures a first rule is on: those that have any, judges before people before reward models. */
export function sourceOf({
  judges,
  campaigns,
}: {
  judges: readonly { ok: number }[];
  campaigns: readonly { rankings: number }[];
}): string {
  if (judges.some(({ ok }) => ok > 0)) return "judge";
  return campaigns.some(({ rankings }) => rankings > 0) ? "human" : "reward";
}

export function firstChoice(entrants: string[], by: string): Choice {
  return withMetric(
    {
      metric: METRICS[0]!,
      entrant: entrants.at(-1) ?? null,
      vs: entrants[0] ?? null,
      by,
      source: null,
      reward: null,
      benchmark: null,
      stat: "",
      op: "",
      value: "",
    },
    METRICS[0]!.name,
  );
}

/** With another metric and the bound that most rules on it have. */
export function withMetric(choice: Choice, name: string): Choice {
  const metric = METRICS.find((known) => known.name === name)!;
  const by = metric.by?.includes(choice.by) ? choice.by : (metric.by?.[0] ?? choice.by);
  const bound = { stat: metric.stats?.[0] ?? "value", op: metric.op ?? ">", value: metric.value };
  return metric.vs === "reward"
    ? withReward({ ...choice, metric, by }, choice.reward)
    : { ...choice, metric, by, ...bound };
}

/** With a reward model to compare with, which must not be better; or with none, and a bound for the accuracy itself. */
export function withReward(choice: Choice, reward: string | null): Choice {
  return reward === null
    ? { ...choice, reward, stat: "ci_low", op: ">", value: choice.metric.value }
    : { ...choice, reward, stat: "ci_high", op: ">=", value: 0 };
}

export function statsOf({ metric, reward }: Choice): readonly string[] {
  const stats = metric.stats ?? ["value"];
  return metric.vs === "reward" && reward !== null ? [...stats, "p"] : stats;
}

export function isComplete({ metric, entrant, vs, source, reward, benchmark, value }: Choice): boolean {
  const otherEntrant = metric.vs !== "entrant" || (!!vs && vs !== entrant);
  const otherReward = metric.vs !== "reward" || reward === null || reward !== source;
  return (
    (!metric.entrant || !!entrant) &&
    otherEntrant &&
    otherReward &&
    (!metric.benchmark || !!benchmark) &&
    value !== ""
  );
}

/** The rule as the server takes it; null fields are left out of the text. */
export function ruleOf(choice: Choice): Record<string, unknown> {
  const { metric } = choice;
  const rewarded = metric.vs === "reward";
  return {
    metric: metric.name,
    benchmark: metric.benchmark ? choice.benchmark : null,
    entrant: metric.entrant ? choice.entrant : null,
    vs: rewarded ? choice.reward : metric.vs ? choice.vs : null,
    by: metric.by ? choice.by : null,
    source: rewarded ? choice.source : null,
    stat: metric.stats ? choice.stat : null,
    op: choice.op,
    value: choice.value === false ? false : Number(choice.value),
  };
}
