import { answerText, type CallingAnswer, isAnswer } from "../../../shared/text/answers";

const ANSWERS = ["chosen", "rejected", "response", "reference"];

type Fields = Record<string, unknown>;

/** The parts of a sample that people read, each with its name: a turn of the prompt, an answer, a margin. */
function textsOf(fields: Fields): Map<string, string> {
  const { prompt, ...rest } = fields;
  const turns = (prompt ?? []) as CallingAnswer[];
  const texts = new Map(
    turns.map((turn, at) => [turns.length > 1 ? `turn ${at + 1}: ${turn.role}` : "prompt", answerText(turn)]),
  );
  const place = (name: string) => (ANSWERS.includes(name) ? ANSWERS.indexOf(name) : ANSWERS.length);
  for (const [name, value] of Object.entries(rest).sort(([a], [b]) => place(a) - place(b)))
    texts.set(name, isAnswer(value) ? answerText(value) : JSON.stringify(value));
  return texts;
}

/** The names of both samples' parts, those of the first one in their order, with the texts where there are any. */
export function textPairs(before: Fields, after: Fields): [string, string | undefined, string | undefined][] {
  const old = textsOf(before);
  const now = textsOf(after);
  return [...new Set([...old.keys(), ...now.keys()])].map((name) => [name, old.get(name), now.get(name)]);
}
