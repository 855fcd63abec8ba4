/** A piece of a line of Markdown. */
export type Inline =
  | string
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] };

const MARKS: Record<string, "strong" | "em" | "del"> = {
  "**": "strong",
  __: "strong",
  "*": "em",
  _: "em",
  "~~": "del",
};
const TOKEN = /\\[!-/:-@[-`{-~]|`+|\*{1,2}|_{1,2}|~~|\[/g;
// Only these leave the page; what else a model writes in brackets stays text.
const ADDRESS = /^(?:https?:\/\/|mailto:)[^\s<>]+$/i;
const DEEPEST = 8;
// Marks look for their ends through the whole text: a longer one, in which no one sets any, is shown as it is.
const LONGEST = 20_000;

/** The emphasis, code and links of a text without block structure; what has no end stays text. */
export function inlineOf(text: string, depth = 0): Inline[] {
  if (depth >= DEEPEST || text.length > LONGEST) return text ? [text] : [];
  const found: Inline[] = [];
  let plain = "";
  let at = 0;
  // What has no end anywhere behind is not looked for again, so that time is proportional to the length.
  const endless = new Set<string>();
  const add = (piece: Inline, end: number) => {
    if (plain) found.push(plain);
    plain = "";
    found.push(piece);
    at = end;
  };
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) break;
    plain += text.slice(at, match.index);
    at = match.index;
    const [token] = match;
    const after = at + token.length;
    if (token.startsWith("\\")) {
      plain += token.slice(1);
      at = after;
      continue;
    }
    if (token.startsWith("`")) {
      const end = endOfCode(text, token, after, endless);
      if (end >= 0) {
        add({ kind: "code", text: codeOf(text.slice(after, end)) }, end + token.length);
        continue;
      }
    } else if (token === "[") {
      const link = linkAt(text, at, endless);
      if (link) {
        add({ kind: "link", href: link.href, children: inlineOf(link.label, depth + 1) }, link.end);
        continue;
      }
    } else if (opens(text, at, token)) {
      const end = endOf(text, token, after, endless);
      if (end >= 0) {
        const children = inlineOf(text.slice(after, end), depth + 1);
        add({ kind: MARKS[token]!, children }, end + token.length);
        continue;
      }
    }
    plain += token;
    at = after;
  }
  plain += text.slice(at);
  if (plain) found.push(plain);
  return found;
}

/** As many backticks as opened it, neither more nor fewer. */
function endOfCode(text: string, ticks: string, from: number, endless: Set<string>): number {
  if (endless.has(ticks)) return -1;
  for (let at = text.indexOf(ticks, from); at >= 0; at = text.indexOf(ticks, at)) {
    let end = at;
    while (text[end] === "`") end++;
    if (end - at === ticks.length) return at;
    at = end;
  }
  endless.add(ticks);
  return -1;
}

function codeOf(text: string): string {
  const line = text.replaceAll("\n", " ");
  return line.length > 2 && line.startsWith(" ") && line.endsWith(" ") && line.trim()
    ? line.slice(1, -1)
    : line;
}

const isSpace = (character: string | undefined) => character === undefined || /\s/.test(character);
const isWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

/** Emphasis begins before what is not a space, and one of underscores not within a word: `snake_case` has none. */
function opens(text: string, at: number, token: string): boolean {
  return !isSpace(text[at + token.length]) && !(token.startsWith("_") && isWord(text[at - 1]));
}

/** Where the mark ends that begins before `from`; -1 where it does not. Code within it is passed over. */
function endOf(text: string, token: string, from: number, endless: Set<string>): number {
  if (endless.has(token)) return -1;
  const sign = token[0]!;
  for (let at = from; at < text.length;) {
    const character = text[at]!;
    if (character === "\\") at += 2;
    else if (character === "`") {
      let ticks = at;
      while (text[ticks] === "`") ticks++;
      const end = endOfCode(text, text.slice(at, ticks), ticks, endless);
      at = end < 0 ? ticks : end + ticks - at;
    } else if (character === sign) {
      let end = at;
      while (text[end] === sign) end++;
      const run = end - at;
      const closes = !isSpace(text[at - 1]) && !(sign === "_" && isWord(text[end]));
      // The inner of two marks, three signs together, ends first.
      if (closes && (run === token.length || run === 3)) return run === 3 && token.length === 2 ? at + 1 : at;
      at = end;
    } else at++;
  }
  endless.add(token);
  return -1;
}

function linkAt(
  text: string,
  at: number,
  endless: Set<string>,
): { label: string; href: string; end: number } | null {
  if (endless.has("[")) return null;
  const close = text.indexOf("](", at + 1);
  const end = close < 0 ? -1 : text.indexOf(")", close);
  if (end < 0) endless.add("[");
  const label = text.slice(at + 1, close);
  if (end < 0 || label.includes("[") || !label.trim()) return null;
  const href = text.slice(close + 2, end);
  return ADDRESS.test(href) ? { label, href, end: end + 1 } : null;
}
