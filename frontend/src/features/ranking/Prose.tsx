import { FlaggedText } from "../../shared/text/FlaggedText";
import { loadMarkdown, MarkdownText } from "../../shared/text/markdown/MarkdownText";
import { useTextView } from "../../shared/text/markdown/textView";
import type { TextRange, TextSpan } from "../../shared/text/spans";
import { partsOf } from "./textParts";

interface Properties {
  text: string;
  spans?: readonly TextSpan[];
  pending?: TextRange | null;
  /** As it is, whatever the reader chose. */
  exact?: boolean;
}

const NONE: readonly TextSpan[] = [];

// With the page, since an annotator may be without a connection before the first answer.
void loadMarkdown();

/** A model's text with its Markdown rendered, or as it is: line breaks kept, fenced code in a fixed-width font, nothing
 * else interpreted, flagged passages marked. */
export function Prose({ text, spans = NONE, pending, exact }: Properties) {
  const [view] = useTextView();
  if (view === "rendered" && !exact && !spans.length && !pending) return <MarkdownText text={text} />;
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
