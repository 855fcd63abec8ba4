import { Fragment, type ReactNode, useMemo } from "react";
import { type Block, blocksOf } from "./blocks";
import type { Inline } from "./inline";

/** A model's text with its Markdown rendered, in the browser, since annotators also work without a connection. It is
 * made of elements and never of HTML, and runs and loads nothing. */
export function MarkdownText({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return <div className="markdown">{blocks.map(drawn)}</div>;
}

function drawn(block: Block, at: number): ReactNode {
  switch (block.kind) {
    case "paragraph":
      return <p key={at}>{block.children.map(piece)}</p>;
    case "heading":
      // No heading of the page, whose outline is not for an answer to change.
      return (
        <p key={at} className="markdown-heading" data-level={block.level}>
          {block.children.map(piece)}
        </p>
      );
    case "code":
      return (
        <pre key={at} className="markdown-code" tabIndex={0}>
          {block.text}
        </pre>
      );
    case "quote":
      return <blockquote key={at}>{block.children.map(drawn)}</blockquote>;
    case "list": {
      const items = block.items.map((item, place) => <li key={place}>{item.map(drawn)}</li>);
      return block.start === null ? (
        <ul key={at}>{items}</ul>
      ) : (
        <ol key={at} start={block.start}>
          {items}
        </ol>
      );
    }
    case "table":
      return (
        <div key={at} className="markdown-table" tabIndex={0} role="group" aria-label="Table of the answer">
          <table>
            <thead>
              <tr>
                {block.head.map((cell, place) => (
                  <th key={place}>{cell.map(piece)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, line) => (
                <tr key={line}>
                  {row.map((cell, place) => (
                    <td key={place}>{cell.map(piece)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={at} />;
  }
}

function piece(inline: Inline, at: number): ReactNode {
  if (typeof inline === "string") return <Fragment key={at}>{inline}</Fragment>;
  if (inline.kind === "code") return <code key={at}>{inline.text}</code>;
  const children = inline.children.map(piece);
  if (inline.kind === "link")
    return (
      <a key={at} href={inline.href} target="_blank" rel="noopener noreferrer nofollow" title={inline.href}>
        {children}
      </a>
    );
  const { kind: Mark } = inline;
  return <Mark key={at}>{children}</Mark>;
}
