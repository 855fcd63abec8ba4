import { FlaggedText } from "./FlaggedText";
import { MarkdownText } from "./markdown/MarkdownText";
import { useTextView } from "./markdown/textView";
import type { TextSpan } from "./spans";

const NONE: readonly TextSpan[] = [];

/** What a model wrote: its Markdown rendered, or as it is where the reader chose so, and where passages of it are
 * flagged, whose places are those of the raw text. */
export function AnswerText({ text, spans = NONE }: { text: string; spans?: readonly TextSpan[] }) {
  const [view] = useTextView();
  if (view === "rendered" && !spans.length) return <MarkdownText text={text} />;
  return (
    <pre className="text">
      <FlaggedText text={text} spans={spans} />
    </pre>
  );
}
