import { useEffect, useState } from "react";
import type { Task } from "../../../api/evaluation/ranking";
import type { Work } from "../work/work";
import { choiceOf, isOpen, withChoice, type Question, type Replies } from "./replies";

export interface Asking {
  questions: readonly Question[];
  replies: Replies;
  /** The label of the question that has the keys; none: the task has them. */
  marked: string | null;
  /** The first that still needs a reply. */
  open: Question | undefined;
  mark: (label: string | null) => void;
  reply: (replies: Replies) => void;
  /** Whether this took the key, so that it does nothing else. */
  grab: (key: string, event: KeyboardEvent) => boolean;
}

/** The id of a question's text field. */
export const fieldOf = (place: number) => `${FIELD}${place}`;
const FIELD = "rank-question-";

/** The campaign's questions about the item, one of which may have the keys. */
export function useQuestions(task: Task, work: Work, change: (next: Partial<Work>) => void): Asking {
  const { questions } = task;
  const { replies } = work;
  const [marked, setMarked] = useState<string | null>(null);
  const at = questions.findIndex(({ label }) => label === marked);
  const mark = (label: string | null) => {
    setMarked(label);
    const place = questions.findIndex((one) => one.label === label && one.kind === "text");
    if (place >= 0) document.getElementById(fieldOf(place))?.focus();
    // Else the next digit would be written into the text.
    else if (document.activeElement?.id.startsWith(FIELD)) (document.activeElement as HTMLElement).blur();
  };
  useEffect(() => {
    if (marked !== null) {
      document.querySelector(".rank-question[data-marked]")?.scrollIntoView({ block: "nearest" });
    }
  }, [marked]);
  const goTo = (place: number) => mark(questions[(place + questions.length) % questions.length]!.label);
  const reply = (next: Replies) => change({ replies: next });
  const grab = (key: string, event: KeyboardEvent) => {
    if (!questions.length) return false;
    if (key === "Q") {
      if (at < 0) mark((questions.find((one) => isOpen(one, replies)) ?? questions[0]!).label);
      else goTo(at + 1);
      return true;
    }
    const question = questions[at];
    // Shortcuts with arrows are the passages'; those of a button are its own.
    if (!question || event.shiftKey) return false;
    const choice = choiceOf(key, question);
    if (key === "Escape") mark(null);
    else if (key === "ArrowDown") goTo(at + 1);
    else if (key === "ArrowUp") goTo(at - 1);
    else if (choice !== undefined) {
      const next = withChoice(replies, question, choice);
      reply(next);
      // One choice is all: the keys go to what is still open, or back to the task.
      if (question.kind === "one_choice" && next[question.label]) {
        mark(questions.find((one) => isOpen(one, next))?.label ?? null);
      }
    } else return /^[0-9]$/.test(key);
    return true;
  };
  return {
    questions,
    replies,
    marked: at < 0 ? null : marked,
    open: questions.find((one) => isOpen(one, replies)),
    mark,
    reply,
    grab,
  };
}
