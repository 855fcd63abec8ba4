import { segmentsOf, type TextRange, type TextSpan } from "./spans";

interface Properties {
  text: string;
  spans: readonly TextSpan[];
  /** The part that is shown, in UTF-16 units; all without. */
  part?: TextRange;
  /** What is about to be flagged, in UTF-16 units. */
  pending?: TextRange | null;
}

/** A text with its flagged passages marked. Nothing is added to the text, so that its offsets stay what they are. */
export function FlaggedText({ text, spans, part = { start: 0, end: text.length }, pending }: Properties) {
  return segmentsOf(text, part, spans, pending).map((one) => {
    const piece = text.slice(one.start, one.end);
    if (!one.spans.length && !one.pending) return piece;
    const title = one.spans.map(({ label, note }) => (note ? `${label}: ${note}` : label)).join("; ");
    return (
      <mark
        key={one.start}
        className="flagged"
        data-pending={one.pending || undefined}
        title={title || undefined}
      >
        {piece}
      </mark>
    );
  });
}
