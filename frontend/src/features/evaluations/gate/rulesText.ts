/**
 * The rules of a gate as written in a file: YAML as such files use it (maps and lists by indentation or in braces,
 * plain and quoted words, numbers, true, false, null, comments), or JSON. Anchors, tags and texts over several lines
 * are not read.
 */

export class RulesFault extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(`line ${line}: ${message}`);
  }
}

type Value = string | number | boolean | null | Value[] | { [key: string]: Value };

interface Line {
  number: number;
  indent: number;
  text: string;
}

/** A document with `rules`, from one or from a bare list of them. Throws `RulesFault`. */
export function readRules(text: string): { rules: Record<string, unknown>[] } & Record<string, unknown> {
  const document = readDocument(text);
  const rules = Array.isArray(document) ? document : isMap(document) ? document.rules : undefined;
  if (!Array.isArray(rules)) throw new RulesFault(1, "there is no list of `rules`");
  const bad = rules.findIndex((rule) => !isMap(rule));
  if (bad >= 0) throw new RulesFault(1, `rule ${bad + 1} is not a mapping of fields`);
  return Array.isArray(document)
    ? { rules: rules as Record<string, unknown>[] }
    : { ...(document as Record<string, unknown>), rules: rules as Record<string, unknown>[] };
}

/** A rule on one line of a file. */
export function writeRule(rule: Record<string, unknown>): string {
  const fields = Object.entries(rule)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([key, value]) => `${key}: ${written(value)}`);
  return `- {${fields.join(", ")}}`;
}

function written(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  if (typeof value !== "string") return JSON.stringify(value);
  const plain = /^[A-Za-z_][A-Za-z0-9_.@/+-]*$/.test(value) && typeof scalar(value) === "string";
  return plain ? value : JSON.stringify(value);
}

function isMap(value: unknown): value is Record<string, Value> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readDocument(text: string): Value {
  try {
    return JSON.parse(text) as Value;
  } catch {
    // Then it is YAML, or the YAML parser reports the fault.
  }
  const lines = text
    .split("\n")
    .map((raw, at) => ({ number: at + 1, indent: raw.search(/\S|$/), text: uncommented(raw).trim() }))
    .filter((line) => line.text && line.text !== "---");
  if (!lines.length) throw new RulesFault(1, "there is nothing in it");
  const [value, end] = block(lines, 0, lines[0]!.indent);
  if (end < lines.length) throw new RulesFault(lines[end]!.number, "it is indented differently");
  return value;
}

/** Without a comment, which begins at a # outside of quotes and after a space. */
function uncommented(line: string): string {
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const sign = line[at]!;
    if (quote) quote = sign === quote ? "" : quote;
    else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === "#" && (at === 0 || /\s/.test(line[at - 1]!))) return line.slice(0, at);
  }
  return line;
}

const KEY = /^("[^"]*"|'[^']*'|[^\s"'{}[\],:-][^"'{}[\],:]*)\s*:(?:\s+(.*))?$/;

/** The list or map that begins at line `at`, and the line behind it. */
function block(lines: Line[], at: number, indent: number): [Value, number] {
  return lines[at]!.text === "-" || lines[at]!.text.startsWith("- ")
    ? list(lines, at, indent)
    : map(lines, at, indent);
}

function list(lines: Line[], at: number, indent: number): [Value, number] {
  const items: Value[] = [];
  let line = lines[at];
  while (line && line.indent === indent && /^-(\s|$)/.test(line.text)) {
    const rest = line.text.slice(1).trim();
    if (!rest) {
      const next = lines[at + 1];
      if (!next || next.indent <= indent) throw new RulesFault(line.number, "the item is empty");
      const [item, end] = block(lines, at + 1, next.indent);
      items.push(item);
      at = end;
    } else if (KEY.test(rest)) {
      // `- metric: win_rate`: a map whose other fields are below its first.
      const inner = line.indent + line.text.length - rest.length;
      const changed = [...lines];
      changed[at] = { ...line, indent: inner, text: rest };
      const [item, end] = map(changed, at, inner);
      items.push(item);
      at = end;
    } else {
      items.push(flow(rest, line.number));
      at += 1;
    }
    line = lines[at];
  }
  return [items, at];
}

function map(lines: Line[], at: number, indent: number): [Value, number] {
  const fields: Record<string, Value> = {};
  let line = lines[at];
  if (line && !KEY.test(line.text)) return [flow(line.text, line.number), at + 1];
  while (line && line.indent === indent && !/^-(\s|$)/.test(line.text)) {
    const [, name, rest] = KEY.exec(line.text) ?? [];
    if (!name) throw new RulesFault(line.number, `${line.text} is no \`field: value\``);
    const key = String(scalar(name.trim()));
    if (key in fields) throw new RulesFault(line.number, `${key} is there twice`);
    at += 1;
    const next = lines[at];
    const listBelow = next && next.indent === indent && /^-(\s|$)/.test(next.text);
    if (rest?.trim()) fields[key] = flow(rest.trim(), line.number);
    else if (next && (next.indent > indent || listBelow))
      [fields[key], at] = block(lines, at, next.indent) as [Value, number];
    else fields[key] = null;
    line = lines[at];
  }
  return [fields, at];
}

/** A value on one line: a word, a number, `{...}` or `[...]`. */
function flow(text: string, line: number): Value {
  let at = 0;
  const skip = () => {
    while (/\s/.test(text[at] ?? "")) at += 1;
  };
  const expect = (sign: string) => {
    skip();
    if (text[at] !== sign) throw new RulesFault(line, `${sign} is missing`);
    at += 1;
  };
  const word = (ends: string): string => {
    skip();
    const quote = text[at];
    if (quote === '"' || quote === "'") {
      const end = text.indexOf(quote, at + 1);
      if (end < 0) throw new RulesFault(line, `${quote} is not closed`);
      const found = text.slice(at, end + 1);
      at = end + 1;
      return found;
    }
    const start = at;
    while (at < text.length && !ends.includes(text[at]!)) at += 1;
    return text.slice(start, at).trim();
  };
  const value = (ends: string): Value => {
    skip();
    if (text[at] === "{" || text[at] === "[") return nested(text[at] === "{" ? "}" : "]");
    return scalar(word(ends));
  };
  const nested = (close: "}" | "]"): Value => {
    const items: Value[] = [];
    const fields: Record<string, Value> = {};
    at += 1;
    skip();
    while (text[at] !== close) {
      if (at >= text.length) throw new RulesFault(line, `${close} is missing`);
      if (close === "}") {
        const key = String(scalar(word(":,}")));
        expect(":");
        fields[key] = value(",}");
      } else items.push(value(",]"));
      skip();
      if (text[at] === ",") at += 1;
      else if (text[at] !== close) throw new RulesFault(line, `${close} is missing`);
      skip();
    }
    at += 1;
    return close === "}" ? fields : items;
  };
  const found = value("");
  skip();
  if (at < text.length) throw new RulesFault(line, `${text.slice(at)} is too much`);
  return found;
}

function scalar(text: string): string | number | boolean | null {
  if (/^".*"$|^'.*'$/.test(text)) return text.slice(1, -1);
  if (text === "true" || text === "false") return text === "true";
  if (text === "null" || text === "~" || text === "") return null;
  return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}
