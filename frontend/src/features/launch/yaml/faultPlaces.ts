import type { Text } from "@codemirror/state";
import type { Diagnostic } from "@codemirror/lint";
import type { FaultPlace } from "../../../api/client";

/** A place in a recipe's text; both count from 1. */
export interface TextPlace {
  line: number;
  column: number;
}

/** Where in the text a fault is. Null for one of an override, or of the recipe as a whole. A text that is not YAML has
 * no fields, and its faults name their line in words only. */
export function placeOf({ line, column, location }: FaultPlace): TextPlace | null {
  if (line) return { line, column: column ?? 1 };
  const named = /\bline (\d+)\)?$/.exec(location);
  return named && !location.includes("--set ") ? { line: Number(named[1]), column: 1 } : null;
}

/** The offset of a place; the nearest one where the text has become shorter. */
export function offsetOf(text: Text, { line, column }: TextPlace): number {
  const at = text.line(Math.min(Math.max(line, 1), text.lines));
  // The server counts characters, the editor UTF-16 units.
  const before = [...at.text].slice(0, column - 1).join("");
  return at.from + before.length;
}

/** The marks of the faults that are in the text: from the key to the end of its value, as far as it is in that line. */
export function marksOf(text: Text, faults: readonly FaultPlace[]): Diagnostic[] {
  return faults.flatMap((fault) => {
    const place = placeOf(fault);
    if (!place) return [];
    const start = offsetOf(text, place);
    const line = text.lineAt(start);
    const rest = line.text.slice(start - line.from);
    const indent = rest.length - rest.trimStart().length;
    const from = start + (indent < rest.length ? indent : 0);
    const length = /^[^,}\]#]*/.exec(rest.slice(from - start))![0].trimEnd().length;
    const to = Math.min(from + Math.max(length, 1), text.length);
    return [{ from: Math.min(from, to), to, severity: "error" as const, message: fault.message }];
  });
}
