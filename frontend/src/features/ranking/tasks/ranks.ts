/** What an annotator has decided so far: a level for each ranked answer, 1 is best, equal levels are a tie. */
export type Levels = Readonly<Record<string, number>>;

/** The answers best first; unranked ones at the end, in the order shown. */
export function inOrder(keys: readonly string[], levels: Levels): string[] {
  const place = (key: string) => levels[key] ?? Infinity;
  return [...keys].sort((a, b) => {
    const [one, other] = [place(a), place(b)];
    return one === other ? keys.indexOf(a) - keys.indexOf(b) : one - other;
  });
}

export function missing(keys: readonly string[], levels: Levels): string[] {
  return keys.filter((key) => levels[key] === undefined);
}

/** Ranks as they are submitted, in the order of `keys`: 1, 2, 2, 4. Every answer has a level. */
export function competitionRanks(keys: readonly string[], levels: Levels): number[] {
  return keys.map((key) => 1 + keys.filter((other) => levels[other]! < levels[key]!).length);
}

export function setLevel(levels: Levels, key: string, level: number): Levels {
  return { ...levels, [key]: level };
}

/** `key` ties with the answer before it in the order; the best one stays what it is. An unranked one ties with the
 * last that is ranked. */
export function tieWithAbove(keys: readonly string[], levels: Levels, key: string): Levels {
  const order = inOrder(keys, levels).filter((one) => levels[one] !== undefined || one === key);
  const above = order[order.indexOf(key) - 1];
  return above === undefined ? levels : { ...levels, [key]: levels[above]! };
}

/** `key` behind all that are ranked, as its own rank; one that has a rank loses it. */
export function toggleNext(levels: Levels, key: string): Levels {
  if (levels[key] === undefined) return { ...levels, [key]: 1 + Math.max(0, ...Object.values(levels)) };
  return Object.fromEntries(Object.entries(levels).filter(([other]) => other !== key));
}

/** The levels after `key` was dragged to the place of `target`; ties of the others stay, `key` leaves its own. */
export function dragged(keys: readonly string[], levels: Levels, key: string, target: string): Levels {
  const order = inOrder(keys, levels);
  const to = order.indexOf(target);
  const next = order.filter((one) => one !== key);
  next.splice(to, 0, key);
  const tied = (a: string, b: string) =>
    a !== key && b !== key && levels[a] !== undefined && levels[a] === levels[b];
  return levelsOf(next, tied, rankedUpTo(next, levels, to + 1));
}

/** Makes the answers at `at` and after it in the order a tie, or no longer one. */
export function toggleTie(keys: readonly string[], levels: Levels, at: number): Levels {
  const order = inOrder(keys, levels);
  const was = (a: string, b: string) => levels[a] !== undefined && levels[a] === levels[b];
  const [left, right] = [order[at]!, order[at + 1]!];
  const tied = (a: string, b: string) => (a === left && b === right ? !was(a, b) : was(a, b));
  return levelsOf(order, tied, rankedUpTo(order, levels, at + 2));
}

/** How many of the order are ranked once its first `least` are. No one has judged the others by leaving them where
 * they were shown; only a single one has no place but the last. */
function rankedUpTo(order: readonly string[], levels: Levels, least: number): number {
  const last = order.findLastIndex((key) => levels[key] !== undefined);
  const ranked = Math.max(least, last + 1);
  return ranked >= order.length - 1 ? order.length : ranked;
}

function levelsOf(order: readonly string[], tied: (a: string, b: string) => boolean, ranked: number): Levels {
  const levels: Record<string, number> = {};
  let level = 0;
  order.slice(0, ranked).forEach((key, at) => {
    if (at === 0 || !tied(order[at - 1]!, key)) level += 1;
    levels[key] = level;
  });
  return levels;
}

/** `B > A = C`, of those that are ranked. */
export function inWords(keys: readonly string[], levels: Levels): string {
  return inOrder(keys, levels)
    .filter((key) => levels[key] !== undefined)
    .map((key, at, order) =>
      at === 0 ? key : `${levels[key] === levels[order[at - 1]!] ? "=" : ">"} ${key}`,
    )
    .join(" ");
}

/** The next answer without a level after `key`, around the end; `key` itself when there is none. */
export function nextUnranked(keys: readonly string[], levels: Levels, key: string): string {
  const from = keys.indexOf(key);
  const around = [...keys.slice(from + 1), ...keys.slice(0, from)];
  return around.find((one) => levels[one] === undefined) ?? key;
}

/** Each answer's key -> the first key with the same text. Identical answers are shown and ranked once. */
export function firstOfEqual(
  answers: readonly { key: string; turns: readonly string[] }[],
): Record<string, string> {
  const seen = new Map<string, string>();
  return Object.fromEntries(
    answers.map(({ key, turns }) => {
      const text = JSON.stringify(turns.map((turn) => turn.trim()));
      if (!seen.has(text)) seen.set(text, key);
      return [key, seen.get(text)!];
    }),
  );
}

/** The other keys with the same text as `key`. */
export function equalTo(key: string, first: Readonly<Record<string, string>>): string[] {
  return Object.keys(first).filter((other) => other !== key && first[other] === key);
}

/** The levels of all answers, where those of identical ones are that of the first. */
export function spread(first: Readonly<Record<string, string>>, levels: Levels): Levels {
  return Object.fromEntries(
    Object.entries(first).flatMap(([key, shown]) =>
      levels[shown] === undefined ? [] : [[key, levels[shown]]],
    ),
  );
}
