import type { Schemas } from "../../../api/client";
import type { Condition } from "../../../shared/forms/condition";

type EntrantIn = Schemas["EntrantIn"];

export type DecodingChoice = "default" | "greedy" | "sampled" | "by_category" | "own";

/** One line of the form: a model or an endpoint, which enters once for each of its scores. */
export interface EntrantDraft {
  key: number;
  kind: "model" | "endpoint";
  who: string | null;
  name: string;
  scores: string[];
  decoding: DecodingChoice;
  temperature: number | string;
  maxNewTokens: number | string;
  guidance: number | string;
  samples: number | string;
  /** The reward model that keeps one of the samples; all of them are kept without one. */
  chooser: string | null;
  engine: EntrantIn["engine"];
  family: string;
}

let nextKey = 0;

export function emptyEntrant(kind: "model" | "endpoint" = "model", who: string | null = null): EntrantDraft {
  nextKey += 1;
  return {
    key: nextKey,
    kind,
    who,
    name: "",
    scores: [],
    decoding: "default",
    temperature: 0.7,
    maxNewTokens: "",
    guidance: 1,
    samples: 1,
    chooser: null,
    engine: "transformers",
    family: "",
  };
}

/** With a line for each model that has none yet, in place of lines that name no one. */
export function withModels(drafts: readonly EntrantDraft[], models: readonly string[]): EntrantDraft[] {
  const kept = drafts.filter((one) => one.who);
  const entered = new Set(kept.filter((one) => one.kind === "model").map((one) => one.who));
  return [...kept, ...models.filter((name) => !entered.has(name)).map((name) => emptyEntrant("model", name))];
}

/**
 * Scores as they were typed: "5, 0 -5" is three of them. What is not a number is left out. `helpfulness:4,verbosity:2` is
 * one condition of several attributes, which the server checks.
 */
export function scoresOf(typed: readonly string[]): Condition[] {
  const found = typed
    .flatMap((one) => one.split(one.includes(":") ? /[\s;]+/ : /[\s,;]+/))
    .filter(Boolean)
    .map((one) => one.replaceAll("−", "-"))
    .map((one) => (one.includes(":") ? one : Number(one)))
    .filter((one) => typeof one === "string" || Number.isFinite(one));
  return [...new Set(found)];
}

/** For names: `5`, `helpfulness4_verbosity2`. */
const slugOf = (asked: Condition | null) => String(asked).replaceAll(":", "").replaceAll(",", "_");

function decodingOf(draft: EntrantDraft): EntrantIn["decoding"] {
  if (draft.decoding !== "own") return draft.decoding === "default" ? null : draft.decoding;
  return {
    temperature: Number(draft.temperature),
    max_new_tokens: draft.maxNewTokens === "" ? null : Number(draft.maxNewTokens),
    top_p: 1,
    top_k: 0,
    stop: [],
    n: 1,
    guidance: draft.guidance === "" ? 1 : Number(draft.guidance),
  };
}

/** Several answers are all kept, or a model's best of them. An endpoint's are, whatever was chosen before it was named. */
function samplesOf({ kind, samples, chooser }: EntrantDraft) {
  const number = Number(samples) || 1;
  return kind === "model" && chooser
    ? { samples: 1, best_of: number, reward: chooser }
    : { samples: number, best_of: null, reward: null };
}

/** The entrants that the lines describe, and for each of them which line it is of. */
export function entrantsOf(drafts: readonly EntrantDraft[]): { entrants: EntrantIn[]; lines: number[] } {
  const entrants: EntrantIn[] = [];
  const lines: number[] = [];
  drafts.forEach((draft, line) => {
    if (!draft.who) return;
    const scores = scoresOf(draft.scores);
    for (const score of scores.length ? scores : [null]) {
      const named = draft.name.trim();
      entrants.push({
        [draft.kind]: draft.who,
        name: named ? (scores.length > 1 ? `${named}_${slugOf(score)}` : named) : null,
        score,
        decoding: decodingOf(draft),
        ...samplesOf(draft),
        // An endpoint computes by itself, whatever was chosen before it was named.
        engine: draft.kind === "model" ? draft.engine : "transformers",
        family: draft.family.trim() || null,
      });
      lines.push(line);
    }
  });
  return { entrants, lines };
}

/** How many answers will be made to so many prompts. */
export function answersOf(drafts: readonly EntrantDraft[], prompts: number): number {
  return prompts * entrantsOf(drafts).entrants.reduce((sum, one) => sum + (one.best_of ?? one.samples), 0);
}

/** Errors by place, with the place of an entrant turned into the line that it came from. */
export function byLine(
  places: readonly { location: string; message: string }[],
  lines: readonly number[],
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { location, message } of places) {
    const place = location
      .replace(/^body\./, "")
      .replace(/^entrants\.(\d+)/, (_, at: string) => `entrants.${lines[Number(at)] ?? at}`);
    found[place] ??= message;
  }
  return found;
}

/** The first message at a place or below it. */
export function messageAt(errors: Record<string, string>, place: string): string | undefined {
  const key = Object.keys(errors).find((one) => one === place || one.startsWith(`${place}.`));
  return key && errors[key];
}
