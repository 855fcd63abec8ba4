import { Code } from "@mantine/core";
import type { ReactNode } from "react";
import { type Answer, callsOf, contentOf } from "./answers";
import { differences } from "./difference";
import { Marked } from "./Marked";

interface Properties {
  answer: Answer;
  /** The answer that it is compared with: what differs is marked. */
  other?: Answer;
  mark?: "own-chosen" | "own-rejected";
  /** In place of the whole answer, such as the same with the hits of a search. */
  shown?: ReactNode;
}

/** An answer as people read it: its text, then its calls as those of a conversation are shown. */
export function AnswerBody({ answer, other, mark = "own-chosen", shown }: Properties) {
  if (shown) return <pre className="text">{shown}</pre>;
  const content = contentOf(answer);
  const calls = callsOf(answer);
  const marked = (text: string, compared: string) =>
    other === undefined ? text : <Marked parts={differences(text, compared)[0]} mark={mark} />;
  return (
    <>
      {(content || calls.length === 0) && (
        <pre className="text">{marked(content, other === undefined ? "" : contentOf(other))}</pre>
      )}
      {calls.map((call, at) => (
        <Call key={at} text={call}>
          {marked(call, (other !== undefined && callsOf(other)[at]) || "")}
        </Call>
      ))}
    </>
  );
}

/** A call of a tool, whose text begins with the tool's name. */
export function Call({ text, children }: { text: string; children: ReactNode }) {
  return (
    <Code
      block
      aria-label={`Call of ${text.split(" ", 1)[0]}`}
      style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}
    >
      {children}
    </Code>
  );
}
