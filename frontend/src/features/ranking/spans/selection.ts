import type { TextRange } from "../../../shared/text/spans";
import type { Passage } from "./passages";

/** What is selected of an answer's text; of its first turn where several are. Null where nothing is. */
export function selectedPassage(): Passage | null {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  for (const turn of document.querySelectorAll<HTMLElement>(".rank-answer [data-turn]")) {
    const part = range.intersectsNode(turn) ? partWithin(turn, range) : null;
    const key = turn.closest<HTMLElement>("[data-key]")?.dataset.key;
    if (part && key) return { key, turn: Number(turn.dataset.turn), ...part };
  }
  return null;
}

/** The selected part of a turn, at the places of its whole text, which its pieces know. */
function partWithin(turn: HTMLElement, range: Range): TextRange | null {
  const parts: TextRange[] = [];
  for (const piece of turn.querySelectorAll<HTMLElement>("[data-start]")) {
    if (!range.intersectsNode(piece)) continue;
    const whole = document.createRange();
    whole.selectNodeContents(piece);
    const part = whole.cloneRange();
    if (range.compareBoundaryPoints(Range.START_TO_START, whole) > 0) {
      part.setStart(range.startContainer, range.startOffset);
    }
    if (range.compareBoundaryPoints(Range.END_TO_END, whole) < 0) {
      part.setEnd(range.endContainer, range.endOffset);
    }
    const length = part.toString().length;
    if (!length) continue;
    whole.setEnd(part.startContainer, part.startOffset);
    const start = Number(piece.dataset.start) + whole.toString().length;
    parts.push({ start, end: start + length });
  }
  return parts.length ? { start: parts[0]!.start, end: parts.at(-1)!.end } : null;
}
