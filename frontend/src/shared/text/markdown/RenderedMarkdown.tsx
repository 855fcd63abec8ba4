import { memo, type ReactElement } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

// Only these leave the page; any other address of a model's link is shown, not linked.
const WEB = /^(?:https?:\/\/|mailto:)/i;

// Not a heading of the page, whose outline an answer must not change.
const heading =
  (level: number): Components["h1"] =>
  ({ children }) => (
    <p className="markdown-heading" data-level={level}>
      {children}
    </p>
  );

const COMPONENTS: Components = {
  h1: heading(1),
  h2: heading(2),
  h3: heading(3),
  h4: heading(4),
  h5: heading(5),
  h6: heading(6),
  a: ({ href = "", children }) =>
    WEB.test(href) ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
        {children}
      </a>
    ) : (
      <>
        {children}
        {href && ` (${href})`}
      </>
    ),
  // A picture from elsewhere would tell its server who reads the answer, and when.
  img: ({ src, alt }) => <>{[alt, src && `(${String(src)})`].filter(Boolean).join(" ")}</>,
  // Paragraphs keep their line breaks, and a hard one is followed by its own.
  br: () => null,
  pre: ({ children }) => (
    <pre className="markdown-code" tabIndex={0}>
      {children}
    </pre>
  ),
  code: ({ children }) => <code>{children}</code>,
  table: ({ children }) => (
    <div className="markdown-table" tabIndex={0} role="group" aria-label="Table of the answer">
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => (checked ? "☑" : "☐"),
};

const FOOTNOTES = ["gfmFootnoteCall", "gfmFootnoteDefinition", "gfmPotentialFootnoteCall"];

/** Reads HTML as text, and footnotes, whose anchors would be those of every answer of the page; gives the items of
 * lists paragraphs, which keep their line breaks. */
function asModelsWrite(this: { data(): object }) {
  const data = this.data() as { micromarkExtensions?: object[] };
  (data.micromarkExtensions ??= []).push({ disable: { null: ["htmlFlow", "htmlText", ...FOOTNOTES] } });
  return (root: Node) => spread(root, 0);
}

interface Node {
  spread?: boolean | null;
  children?: Node[];
}

// No model writes deeper, and what walks through a deeper text has no stack left.
const DEEPEST = 60;

function spread(node: Node, depth: number) {
  if (depth > DEEPEST) throw new RangeError(`Markdown nested more than ${DEEPEST} deep`);
  if ("spread" in node) node.spread = true;
  node.children?.forEach((child) => spread(child, depth + 1));
}

const PLUGINS = [[remarkGfm, { singleTilde: false }] as [typeof remarkGfm, object], asModelsWrite];

// The parser's time grows with the square of some texts' lengths.
const LONGEST = 20_000;

/** A model's Markdown as elements, never as HTML; it runs and loads nothing. A text that is too long or too deep for
 * the parser is shown as it is. */
export const RenderedMarkdown = memo(function RenderedMarkdown({ text }: { text: string }) {
  const rendered = text.length <= LONGEST && renderedOf(text);
  return rendered ? <div className="markdown">{rendered}</div> : <pre className="text">{text}</pre>;
});

function renderedOf(text: string): ReactElement | null {
  try {
    return Markdown({
      children: text,
      remarkPlugins: PLUGINS,
      components: COMPONENTS,
      // The components decide which addresses are linked.
      urlTransform: (address) => address,
    });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
