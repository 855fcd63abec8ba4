import type { Schemas } from "../../api/client";

export type Question = Schemas["Question"];

export const KINDS: Record<Question["kind"], string> = {
  one_choice: "One choice",
  several_choices: "Several choices",
  text: "Text",
};
export const MOST_QUESTIONS = 10;
export const MOST_CHOICES = 20;

/** Whether the question can be asked: it has a label, and choices where it needs them. */
export function askable({ label, kind, choices = [] }: Question): boolean {
  return label.trim() !== "" && (kind === "text" || choices.length > 1);
}

/** A question as the API takes it. */
export function questionOf(question: Question): Question {
  return { ...question, choices: question.kind === "text" ? [] : (question.choices ?? []) };
}

/** A reply as a line of text. */
export function replyInWords(reply: string | string[]): string {
  return typeof reply === "string" ? reply : reply.join(", ");
}
