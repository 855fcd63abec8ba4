import type { Schemas } from "../../api/client";
import { signed } from "../format/format";

/** What a policy is asked for: a score, or several attributes as `helpfulness:4,verbosity:2`. */
export type Condition = Schemas["Condition"];
export type Attribute = Schemas["Attribute"];
export type Form = Schemas["ConditionFormat"];
export type Writing = Schemas["Writing"];
export type Values = Record<string, number>;

/** The attribute that a plain number asks for. */
export const SCORE = "rm_score";

export function valuesOf(condition: Condition | null | undefined): Values {
  if (condition === null || condition === undefined || condition === "") return {};
  if (typeof condition === "number") return { [SCORE]: condition };
  return Object.fromEntries(
    condition.split(",").map((part) => {
      const at = part.lastIndexOf(":");
      return [part.slice(0, at), Number(part.slice(at + 1))];
    }),
  );
}

/** Grades of a dataset's row in the order of their names: JSON in the database forgets another one. */
export function gradesOf(sample: object | undefined): Values {
  const { attributes } = (sample ?? {}) as { attributes?: Values | null };
  return Object.fromEntries(Object.entries(attributes ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** In the order of the policy's attributes; those without a value are not asked for. */
export function conditionOf(values: Values, attributes: readonly Attribute[]): Condition {
  const asked = attributes.filter(({ name }) => values[name] !== undefined);
  if (asked.length === 1 && asked[0]!.name === SCORE) return values[SCORE]!;
  return asked.map(({ name }) => `${name}:${values[name]}`).join(",");
}

/** What a policy is asked for by default. */
export function defaultOf(attributes: readonly Attribute[]): Condition {
  const given = attributes.filter((one) => typeof one.default === "number");
  return conditionOf(Object.fromEntries(given.map((one) => [one.name, one.default!])), attributes);
}

/** What is left of a condition when another policy is asked; its own default where that is nothing. */
export function adapted(condition: Condition | null, attributes: readonly Attribute[]): Condition {
  const kept = conditionOf(valuesOf(condition), attributes);
  return kept === "" ? defaultOf(attributes) : kept;
}

/** For people: `5.0`, `helpfulness:4`, or `nothing` where it was asked for none of its attributes. */
export function shown(condition: Condition | null | undefined, digits = 1): string {
  if (typeof condition !== "string") return signed(condition, digits);
  return condition.replaceAll(",", ", ") || "nothing";
}

/** The values of the one attribute in which conditions differ; a curve is along it. */
export function along(conditions: readonly Condition[]): { name: string; values: number[] } {
  const values = conditions.map(valuesOf);
  const names = Object.keys(values[0] ?? {});
  const name = names.find((one) => new Set(values.map((each) => each[one])).size > 1) ?? names[0] ?? SCORE;
  return { name, values: values.map((one) => one[name] ?? 0) };
}

/** What an attribute is called on a page. */
export const titleOf = (name: string) => (name === SCORE ? "score" : name);

/** How a score is written: `“wonderful”`, or `<|rm_score_6|>, once “wonderful”`. Null where digits are. */
export function writtenFor(score: number, form: Form | null | undefined): string | null {
  const part = partOf(score, form);
  if (part === null) return null;
  const { style, words } = form!.writing!;
  return style === "tokens" ? `${signOf(part, form!.writing!)}, once “${words[part]}”` : `“${words[part]}”`;
}

/** What is written for a part of the range, counted from the lowest scores. */
export const signOf = (part: number, writing: Writing) =>
  writing.style === "tokens" ? `<|rm_score_${part}|>` : writing.words[part]!;

/** Parts of equal width, as `score_words.py` has them. */
function partOf(score: number, form: Form | null | undefined): number | null {
  const [only] = form?.attributes ?? [];
  if (!form?.writing || form.writing.style === "digits" || !only) return null;
  const { words } = form.writing;
  const rounded = Math.round(Math.max(only.low, Math.min(only.high, score)) / only.step) * only.step;
  const part = Math.floor(((rounded - only.low) / (only.high - only.low)) * words.length + 1e-9);
  return Math.max(0, Math.min(words.length - 1, part));
}

/** A policy's default as its prompt has it: at the end of the request, and before the answer. */
export function promptOf(form: Form): { request: string; opening: string } {
  const [only] = form.attributes;
  const given = form.attributes.filter((one) => typeof one.default === "number");
  const place = form.writing?.place ?? "answer";
  let digits = given.map((one) => `${one.name}:${one.default!.toFixed(one.decimals)}`).join(",");
  if (form.attributes.length === 1 && only!.name === SCORE && given.length)
    digits = `<rm_score> ${only!.default!.toFixed(2)}`;
  const part = given.length ? partOf(only!.default!, form) : null;
  const sign = part === null ? null : signOf(part, form.writing!);
  // A token has its word's leading space in itself.
  const blank = form.writing?.style === "tokens" ? " {}" : "{}";
  const phrase = form.writing?.phrase ?? "";
  const request = sign === null ? digits : phrase.replace(phrase.includes(blank) ? blank : "{}", sign);
  const opening = sign === null ? digits : `${sign}:`;
  return { request: place === "answer" ? "" : request, opening: place === "request" ? "" : opening };
}
