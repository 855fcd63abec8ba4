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
  for (const name of LONG) if (typeof sample[name] === "string") texts[name] = sample[name];
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
  for (const name of LONG) if (name in texts) edited[name] = texts[name];
  const margin = texts.margin?.trim();
  if (margin === "") delete edited.margin;
  else if (margin) edited.margin = Number.isNaN(Number(margin)) ? margin : Number(margin);
  return edited;
}

/** A place as people read it. */
export function labelOf(place: string, sample: Fields): string {
  const turns = (sample.prompt ?? []) as Turn[];
  const at = /^prompt\.(\d+)\.content$/.exec(place)?.[1];
  if (at === undefined) return place;
  return turns.length === 1 ? "prompt" : `turn ${Number(at) + 1}: ${turns[Number(at)]?.role}`;
}
