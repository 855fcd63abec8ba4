/** A flagged passage. Offsets are Unicode code points, as everywhere in the API; strings here count UTF-16 units. */
export interface TextSpan {
  start: number;
  end: number;
  label: string;
  note?: string | null;
}

/** A part of a text, in UTF-16 units. */
export interface TextRange {
  start: number;
  end: number;
}

export interface Segment extends TextRange {
  spans: TextSpan[];
  pending: boolean;
}

/** How many code points are before a place in UTF-16 units; a place within a character is its start. */
export function codePointsBefore(text: string, unit: number): number {
  let count = 0;
  for (let at = 0; at < unit; count++) {
    at += widthAt(text, at);
    if (at > unit) return count;
  }
  return count;
}

/** The place in UTF-16 units behind so many code points; the end of a text that has fewer. */
export function unitsBefore(text: string, codePoints: number): number {
  let at = 0;
  for (let count = 0; count < codePoints && at < text.length; count++) at += widthAt(text, at);
  return at;
}

function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

/** A part of the text in code points. Characters of which it has a half belong to it. */
export function inCodePoints(text: string, { start, end }: TextRange): TextRange {
  const last = codePointsBefore(text, end);
  return { start: codePointsBefore(text, start), end: last + (unitsBefore(text, last) < end ? 1 : 0) };
}

export function inUnits(text: string, { start, end }: TextRange): TextRange {
  return { start: unitsBefore(text, start), end: unitsBefore(text, end) };
}

/** The part of the text, cut wherever a passage begins or ends; each piece with the passages that cover it. */
export function segmentsOf(
  text: string,
  part: TextRange,
  spans: readonly TextSpan[],
  pending: TextRange | null = null,
): Segment[] {
  const placed = spans.map((span) => ({ span, ...inUnits(text, span) }));
  const ends = [...placed, ...(pending ? [pending] : [])].flatMap(({ start, end }) => [start, end]);
  const cuts = [...new Set([part.start, ...ends, part.end])]
    .filter((cut) => cut >= part.start && cut <= part.end)
    .sort((a, b) => a - b);
  return cuts.slice(1).map((end, at) => {
    const start = cuts[at]!;
    const covers = (one: TextRange) => one.start <= start && one.end >= end;
    return {
      start,
      end,
      spans: placed.filter(covers).map(({ span }) => span),
      pending: pending !== null && covers(pending),
    };
  });
}
