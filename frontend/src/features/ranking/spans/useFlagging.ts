import { useEffect, useRef, useState } from "react";
import type { Task } from "../../../api/evaluation/ranking";
import type { Work } from "../work/work";
import {
  flagOf,
  MOST_SPANS,
  moved,
  sameSpan,
  trimmedPassage,
  wordsOf,
  type Passage,
  type SpanFlag,
} from "./passages";
import { selectedPassage } from "./selection";

const ARROWS: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 };

export interface Flagging {
  labels: readonly string[];
  pending: Passage | null;
  note: string;
  /** Why it cannot be flagged. */
  problem: string;
  setNote: (note: string) => void;
  open: () => void;
  cancel: () => void;
  flag: (label: string) => void;
  remove: (span: SpanFlag) => void;
  /** Whether this took the key, so that it does nothing else. */
  grab: (key: string, event: KeyboardEvent) => boolean;
}

/** Flags on passages of the answers: what was selected by pointer, else words that keys go through. */
export function useFlagging(task: Task, work: Work, change: (next: Partial<Work>) => void): Flagging {
  const [pending, setPending] = useState<Passage | null>(null);
  const [note, setNote] = useState("");
  const [problem, setProblem] = useState("");
  const { answers, span_labels: labels } = task;
  const takeSelected = useSelection();

  const open = () => {
    if (!labels.length) return;
    const selected = takeSelected();
    const chosen = selected && trimmedPassage(answers, selected);
    document.getSelection()?.removeAllRanges();
    setPending(chosen ?? wordsOf(answers, focusedAnswer() ?? answers[0]!.key)[0] ?? null);
    setNote("");
    setProblem("");
  };
  const cancel = () => setPending(null);
  const flag = (label: string) => {
    if (!pending) return;
    const span = flagOf(answers, pending, label, note);
    const others = work.spans.filter((one) => !sameSpan(one, span));
    if (others.filter(({ key }) => key === span.key).length >= MOST_SPANS) {
      return setProblem(`An answer has at most ${MOST_SPANS} flags.`);
    }
    change({ spans: [...others, span] });
    cancel();
  };
  const grab = (key: string, event: KeyboardEvent) => {
    if (key === "P" && !pending && labels.length) {
      open();
      return true;
    }
    if (!pending || key === "Tab") return false;
    // Buttons of the panel keep what presses them.
    const pressed = (key === "Enter" || key === " ") && (event.target as HTMLElement).closest?.("button");
    if (pressed) return false;
    const label = labels[Number(key) - 1];
    const step = ARROWS[key];
    if (key === "Escape") cancel();
    else if (label !== undefined) flag(label);
    else if (key === "N") document.getElementById("rank-span-note")?.focus();
    else if (step) setPending(moved(wordsOf(answers, pending.key), pending, step, event.shiftKey));
    return true;
  };
  return {
    labels,
    pending,
    note,
    problem,
    setNote,
    open,
    cancel,
    flag,
    remove: (span) => change({ spans: work.spans.filter((one) => !sameSpan(one, span)) }),
    grab,
  };
}

function focusedAnswer(): string | undefined {
  return document.querySelector<HTMLElement>(".rank-answer[data-focused]")?.dataset.key;
}

/** What was selected last, once; a tap on a button may clear the selection before it is asked for. */
function useSelection(): () => Passage | null {
  const selected = useRef<Passage | null>(null);
  useEffect(() => {
    const onChange = () => {
      const passage = selectedPassage();
      const anchor = document.getSelection()?.anchorNode;
      const inText = anchor?.parentElement?.closest(".rank-answer-text");
      if (passage || inText) selected.current = passage;
    };
    document.addEventListener("selectionchange", onChange);
    return () => document.removeEventListener("selectionchange", onChange);
  }, []);
  return () => {
    const passage = selected.current;
    selected.current = null;
    return passage;
  };
}
