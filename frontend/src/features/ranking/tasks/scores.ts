import type { Levels } from "./ranks";

/** Scores so far: by criterion, then by the answer's key. */
export type Scores = Readonly<Record<string, Levels>>;

export interface Cell {
  answer: string;
  criterion: string;
}

/** All that is to be scored: each answer by all criteria, then the next. */
export function cellsOf(keys: readonly string[], criteria: readonly string[]): Cell[] {
  return keys.flatMap((answer) => criteria.map((criterion) => ({ answer, criterion })));
}

export function scoreAt(scores: Scores, { answer, criterion }: Cell): number | undefined {
  return scores[criterion]?.[answer];
}

/** With one score more; None takes it away. */
export function withScore(scores: Scores, { answer, criterion }: Cell, score: number | undefined): Scores {
  const others = Object.fromEntries(
    Object.entries(scores[criterion] ?? {}).filter(([other]) => other !== answer),
  );
  return { ...scores, [criterion]: score === undefined ? others : { ...others, [answer]: score } };
}

/** The next cell without a score after `from`, around the end; `from` itself when there is none. */
export function nextOpen(cells: readonly Cell[], scores: Scores, from: Cell): Cell {
  const at = cells.findIndex((one) => one.answer === from.answer && one.criterion === from.criterion);
  const around = [...cells.slice(at + 1), ...cells.slice(0, at)];
  return around.find((one) => scoreAt(scores, one) === undefined) ?? from;
}

/** The score that a digit gives on a scale up to `points`; 0 is ten. None off the scale. */
export function scoreOf(key: string, points: number): number | undefined {
  if (!/^[0-9]$/.test(key)) return undefined;
  const score = key === "0" ? 10 : Number(key);
  return score <= points ? score : undefined;
}
