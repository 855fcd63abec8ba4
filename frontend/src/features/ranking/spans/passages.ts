import type { Schemas } from "../../../api/client";
import type { Task } from "../../../api/evaluation/ranking";
import { inCodePoints, inUnits, type TextRange } from "../../../shared/text/spans";
import { equalTo } from "../tasks/ranks";
import { partsOf } from "../textParts";

export type SpanFlag = Schemas["SpanFlag"];

/** Flags that the server takes for one answer. */
export const MOST_SPANS = 25;

/** A part of a turn of an answer, in UTF-16 units. Turns count from 1. */
export interface Passage extends TextRange {
  key: string;
  turn: number;
}

type Answers = Task["answers"];

const textOf = (answers: Answers, { key, turn }: { key: string; turn?: number }): string =>
  answers.find((answer) => answer.key === key)?.turns[(turn ?? 1) - 1] ?? "";

/** The words that are shown of an answer, in their order. */
export function wordsOf(answers: Answers, key: string): Passage[] {
  const turns = answers.find((answer) => answer.key === key)?.turns ?? [];
  return turns.flatMap((text, place) =>
    partsOf(text).flatMap((part) =>
      wordRanges(text.slice(part.start, part.end)).map(({ start, end }) => ({
        key,
        turn: place + 1,
        start: part.start + start,
        end: part.start + end,
      })),
    ),
  );
}

function wordRanges(text: string): TextRange[] {
  const segments = [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)];
  const words = segments.filter((one) => one.isWordLike);
  // A text of signs alone has no words.
  return (words.length ? words : segments.filter((one) => one.segment.trim())).map(({ index, segment }) => ({
    start: index,
    end: index + segment.length,
  }));
}

/** The passage moved by so many words, or with its end moved by them; it stays in its answer, and has a word. */
export function moved(words: readonly Passage[], from: Passage, step: number, extend: boolean): Passage {
  const first = words.findIndex((word) => word.turn === from.turn && word.end > from.start);
  const last = words.findLastIndex((word) => word.turn === from.turn && word.start < from.end);
  if (first < 0 || last < first) return from;
  if (!extend) return words[clamp(step > 0 ? last + step : first + step, 0, words.length - 1)]!;
  const inTurn = words.findLastIndex((word) => word.turn === from.turn);
  const end = words[clamp(last + step, first, inTurn)]!.end;
  return { ...from, start: Math.min(from.start, words[first]!.start), end };
}

const clamp = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));

/** Without the spaces around it; null where nothing is left. */
export function trimmedPassage(answers: Answers, passage: Passage): Passage | null {
  const text = textOf(answers, passage).slice(passage.start, passage.end);
  const start = passage.start + text.length - text.trimStart().length;
  const end = start + text.trim().length;
  return end > start ? { ...passage, start, end } : null;
}

export function quote(answers: Answers, passage: Passage): string {
  return textOf(answers, passage).slice(passage.start, passage.end);
}

export function quoteOf(answers: Answers, span: SpanFlag): string {
  const text = textOf(answers, span);
  const { start, end } = inUnits(text, span);
  return text.slice(start, end);
}

export function flagOf(answers: Answers, passage: Passage, label: string, note: string): SpanFlag {
  const { key, turn } = passage;
  return { key, turn, ...inCodePoints(textOf(answers, passage), passage), label, note: note.trim() || null };
}

export function sameSpan(one: SpanFlag, other: SpanFlag): boolean {
  const places = ["key", "turn", "start", "end", "label"] as const;
  return places.every((name) => one[name] === other[name]);
}

/** Flags of the answers that are shown: of identical ones those of the first. */
export function shownSpans(spans: readonly SpanFlag[], first: Readonly<Record<string, string>>): SpanFlag[] {
  return spans.filter(({ key }) => first[key] === key);
}

/** The flags of all answers, where identical ones have those of the first. They may differ in the spaces before. */
export function spreadSpans(
  answers: Answers,
  spans: readonly SpanFlag[],
  first: Readonly<Record<string, string>>,
): SpanFlag[] {
  const before = (span: SpanFlag) => {
    const text = textOf(answers, span);
    return text.length - text.trimStart().length;
  };
  return shownSpans(spans, first).flatMap((span) =>
    [span.key, ...equalTo(span.key, first)].map((key) => {
      const there = { ...span, key };
      const by = before(there) - before(span);
      return { ...there, start: span.start + by, end: span.end + by };
    }),
  );
}
