import type { CallingAnswer } from "../../../shared/text/answers";

interface Turn {
  role: string;
  content: string;
}
export type Fields = Record<string, unknown>;

/** What the editor of a row shows: every text that may be changed, by the place where errors name it. */
export interface Texts {
  [place: string]: string;
}

const LONG = ["chosen", "rejected", "response", "reference"];

export function textsOfSample(sample: Fields): Texts {
  const turns = (sample.prompt ?? []) as Turn[];
  const texts: Texts = Object.fromEntries(turns.map((turn, at) => [`prompt.${at}.content`, turn.content]));
  for (const name of LONG) {
    const answer = sample[name];
    if (typeof answer === "string") texts[name] = answer;
    else if (answer) Object.assign(texts, textsOfCalling(name, answer as CallingAnswer));
  }
  if (typeof sample.margin === "number") texts.margin = String(sample.margin);
  return texts;
}

/** The sample with these texts. An empty margin is left out; one that is not a number is sent as it is, to be refused. */
export function withTexts(sample: Fields, texts: Texts): Fields {
  const turns = (sample.prompt ?? []) as Turn[];
  const edited: Fields = {
    ...sample,
    prompt: turns.map((turn, at) => ({ ...turn, content: texts[`prompt.${at}.content`] ?? turn.content })),
  };
  for (const name of LONG) {
    const answer = sample[name];
    if (typeof answer === "object" && answer)
      edited[name] = callingWithTexts(name, answer as CallingAnswer, texts);
    else if (name in texts) edited[name] = texts[name];
  }
  const margin = texts.margin?.trim();
  if (margin === "") delete edited.margin;
  else if (margin) edited.margin = Number.isNaN(Number(margin)) ? margin : Number(margin);
  return edited;
}

/** The text before the calls of an answer, and the arguments of each call. */
function textsOfCalling(name: string, answer: CallingAnswer): Texts {
  const texts: Texts = { [`${name}.content`]: answer.content ?? "" };
  answer.tool_calls?.forEach((call, at) => {
    texts[argumentsOf(name, at)] = call.function?.arguments ?? "";
  });
  return texts;
}

function callingWithTexts(name: string, answer: CallingAnswer, texts: Texts): CallingAnswer {
  return {
    ...answer,
    content: texts[`${name}.content`] ?? answer.content,
    tool_calls: answer.tool_calls?.map((call, at) => {
      const given = texts[argumentsOf(name, at)];
      return given !== undefined && call.function
        ? { ...call, function: { ...call.function, arguments: given } }
        : call;
    }),
  };
}

const argumentsOf = (name: string, at: number) => `${name}.tool_calls.${at}.function.arguments`;

/** A place as people read it. */
export function labelOf(place: string, sample: Fields): string {
  const turns = (sample.prompt ?? []) as Turn[];
  const at = /^prompt\.(\d+)\.content$/.exec(place)?.[1];
  if (at === undefined) return labelOfAnswer(place, sample);
  return turns.length === 1 ? "prompt" : `turn ${Number(at) + 1}: ${turns[Number(at)]?.role}`;
}

function labelOfAnswer(place: string, sample: Fields): string {
  const [name, part, at] = place.split(".");
  if (!part) return place;
  if (part === "content") return `${name}: text before its calls`;
  const call = (sample[name!] as CallingAnswer).tool_calls?.[Number(at)];
  return `${name}: arguments of ${call?.function?.name}`;
}
