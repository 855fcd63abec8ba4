import { Fragment } from "react";

/** A model's text as it is: line breaks kept, fenced code in a fixed-width font, nothing else interpreted. */
export function Prose({ text }: { text: string }) {
  const parts = text.split(/^```[^\n]*\n([\s\S]*?)^```[ \t]*$/m);
  return (
    <>
      {parts.map((part, at) => {
        if (at % 2) {
          return (
            <pre key={at} className="rank-code" tabIndex={0}>
              {part}
            </pre>
          );
        }
        return part.trim() ? (
          <pre key={at} className="text">
            {part.replace(/^\n+|\n+$/g, "")}
          </pre>
        ) : (
          <Fragment key={at} />
        );
      })}
    </>
  );
}
