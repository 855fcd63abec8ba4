import { FlaggedText } from "../../shared/text/FlaggedText";
import type { TextRange, TextSpan } from "../../shared/text/spans";
import { partsOf } from "./textParts";

interface Properties {
  text: string;
  spans?: readonly TextSpan[];
  pending?: TextRange | null;
}

const NONE: readonly TextSpan[] = [];

/** A model's text as it is: line breaks kept, fenced code in a fixed-width font, nothing else interpreted. Flagged
 * passages are marked. */
export function Prose({ text, spans = NONE, pending }: Properties) {
  return partsOf(text).map((part) => (
    <pre
      key={part.start}
      data-start={part.start}
      className={part.code ? "rank-code" : "text"}
      tabIndex={part.code ? 0 : undefined}
    >
      <FlaggedText text={text} spans={spans} part={part} pending={pending} />
    </pre>
  ));
}
