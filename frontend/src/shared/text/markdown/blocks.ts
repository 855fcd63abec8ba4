import { type Inline, inlineOf } from "./inline";

/** A part of a Markdown text. */
export type Block =
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; start: number | null; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)(?:([-*+])|(\d{1,9})[.)])[ \t]+(?=\S)/;
const RULE_OF_TABLE = /^\|?(?: *:?-+:? *\|)+(?: *:?-+:?)?$/;
const DEEPEST = 6;

/** The blocks of a Markdown text: what models write, as CommonMark with tables, in which HTML and pictures are text
 * and a line break is one. */
export function blocksOf(text: string): Block[] {
  return blocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
}

function blocks(lines: string[], depth: number): Block[] {
  const found: Block[] = [];
  let paragraph: string[] = [];
  const end = () => {
    if (paragraph.length) found.push({ kind: "paragraph", children: inlineOf(paragraph.join("\n").trim()) });
    paragraph = [];
  };
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line)?.[1];
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (!line.trim()) {
      end();
      at++;
    } else if (fence) {
      end();
      const after = endOfFence(lines, at + 1, fence);
      const indent = line.length - line.trimStart().length;
      const body = lines.slice(at + 1, after).map((one) => outdented(one, indent));
      found.push({ kind: "code", text: body.join("\n") });
      at = after + 1;
    } else if (heading) {
      end();
      const title = heading[2]!.trim().replace(/ #+$/, "");
      found.push({ kind: "heading", level: heading[1]!.length, children: inlineOf(title) });
      at++;
    } else if (RULE.test(line)) {
      end();
      found.push({ kind: "rule" });
      at++;
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      end();
      const from = at;
      while (at < lines.length && QUOTE.test(lines[at]!)) at++;
      const inner = lines.slice(from, at).map((one) => one.replace(QUOTE, ""));
      found.push({ kind: "quote", children: blocks(inner, depth + 1) });
    } else if (item && depth < DEEPEST && !(paragraph.length && item[3] && item[3] !== "1")) {
      end();
      const list = listAt(lines, at, depth);
      found.push(list.block);
      at = list.end;
    } else if (!paragraph.length && line.includes("|") && RULE_OF_TABLE.test((lines[at + 1] ?? "").trim())) {
      const from = at;
      at += 2;
      while (at < lines.length && lines[at]!.includes("|")) at++;
      const rows = lines.slice(from + 2, at).map(cellsOf);
      found.push({ kind: "table", head: cellsOf(line), rows });
    } else {
      paragraph.push(line);
      at++;
    }
  }
  end();
  return found;
}

/** The line that ends the fence; that behind the last where none does. */
function endOfFence(lines: string[], from: number, fence: string): number {
  for (let at = from; at < lines.length; at++) {
    const line = lines[at]!.trim();
    if (line.length >= fence.length && line === fence[0]!.repeat(line.length)) return at;
  }
  return lines.length;
}

/** Without as many of its first blanks. */
function outdented(line: string, by: number): string {
  const blanks = line.length - line.trimStart().length;
  return line.slice(Math.min(by, blanks));
}

/** The list that begins there: its items are of one kind, and what is indented to their text belongs to them. */
function listAt(lines: string[], from: number, depth: number): { block: Block; end: number } {
  const first = ITEM.exec(lines[from]!)!;
  const items: Block[][] = [];
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]!);
    if (!item || item[1]!.length !== first[1]!.length || !!item[2] !== !!first[2] || RULE.test(lines[at]!))
      break;
    const width = item[0].length;
    const inner = [lines[at]!.slice(width)];
    at++;
    let open = true;
    while (at < lines.length) {
      const line = lines[at]!;
      const indent = line.length - line.trimStart().length;
      if (!line.trim()) open = false;
      // Two blanks are enough, as models indent below numbers; a paragraph continues without any.
      else if (indent < Math.min(width, item[1]!.length + 2) && (!open || !goesOn(line))) break;
      else open = true;
      inner.push(outdented(line, width));
      at++;
    }
    items.push(blocks(inner, depth + 1));
  }
  return { block: { kind: "list", start: first[3] ? Number(first[3]) : null, items }, end: at };
}

function goesOn(line: string): boolean {
  return ![FENCE, HEADING, RULE, QUOTE, ITEM].some((kind) => kind.test(line));
}

function cellsOf(line: string): Inline[][] {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((cell) => inlineOf(cell.replaceAll("\\|", "|").trim()));
}
