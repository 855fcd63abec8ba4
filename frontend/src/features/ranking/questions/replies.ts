import type { Schemas } from "../../../api/client";

export type Question = Schemas["Question"];
/** Replies so far, by the question's label. */
export type Replies = Readonly<Record<string, string | string[]>>;

export function isOpen({ label, required }: Question, replies: Replies): boolean {
  return required !== false && !replies[label]?.length;
}

/** Whether the choice is one of the reply. */
export function isChosen({ label }: Question, choice: string, replies: Replies): boolean {
  const reply = replies[label] ?? [];
  return typeof reply === "string" ? reply === choice : reply.includes(choice);
}

/** With the choice made, or taken back where it was made before. */
export function withChoice(replies: Replies, question: Question, choice: string): Replies {
  const chosen = isChosen(question, choice, replies);
  if (question.kind === "one_choice") return withReply(replies, question, chosen ? "" : choice);
  const before = question.choices?.filter((one) => isChosen(question, one, replies)) ?? [];
  return withReply(replies, question, chosen ? before.filter((one) => one !== choice) : [...before, choice]);
}

/** Without the question where the reply is empty. */
export function withReply(replies: Replies, { label }: Question, reply: string | string[]): Replies {
  const others = Object.entries(replies).filter(([other]) => other !== label);
  return Object.fromEntries(reply.length ? [...others, [label, reply]] : others);
}

/** The choice of a digit; 0 is the tenth. */
export function choiceOf(key: string, { choices = [] }: Question): string | undefined {
  return /^[0-9]$/.test(key) ? choices[key === "0" ? 9 : Number(key) - 1] : undefined;
}
