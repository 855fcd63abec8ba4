/** The part of a name that is being typed after an @ before the caret; null where none is. */
export function begunMention(text: string, caret: number): string | null {
  return /(?:^|[^\w@.])@([\w.-]*)$/.exec(text.slice(0, caret))?.[1] ?? null;
}

/** The text with the name in place of the part before the caret, and where the caret is then. */
export function completed(text: string, caret: number, name: string): { text: string; caret: number } {
  const begun = begunMention(text, caret) ?? "";
  const before = `${text.slice(0, caret - begun.length)}${name} `;
  return { text: before + text.slice(caret), caret: before.length };
}

/** Names that begin with the typed part come first, then names that contain it. */
export function candidates(names: readonly string[], begun: string, most = 6): string[] {
  const part = begun.toLowerCase();
  const fitting = names.filter((name) => name.toLowerCase().includes(part));
  const rank = (name: string) => (name.toLowerCase().startsWith(part) ? 0 : 1);
  return fitting.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b)).slice(0, most);
}
