import type { TextRange } from "../../shared/text/spans";

export interface TextPart extends TextRange {
  code: boolean;
}

const FENCED = /^```[^\n]*\n([\s\S]*?)^```[ \t]*$/gm;

/** What is shown of a text, by its places in UTF-16 units: fenced code without its fences, other text without the
 * empty lines around it. */
export function partsOf(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let at = 0;
  for (const match of text.matchAll(FENCED)) {
    parts.push({ ...trimmed(text, at, match.index), code: false });
    const start = match.index + match[0].indexOf("\n") + 1;
    parts.push({ start, end: start + match[1]!.length, code: true });
    at = match.index + match[0].length;
  }
  parts.push({ ...trimmed(text, at, text.length), code: false });
  return parts.filter(({ start, end, code }) => code || text.slice(start, end).trim());
}

function trimmed(text: string, start: number, end: number): TextRange {
  while (start < end && text[start] === "\n") start++;
  while (end > start && text[end - 1] === "\n") end--;
  return { start, end };
}
