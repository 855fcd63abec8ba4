import { Code } from "@mantine/core";

/** A sentence of the server, in which text between backticks is code: a command, a name, an id. */
export function WithCode({ text }: { text: string }) {
  return text
    .split(/`([^`\n]+)`/)
    .map((part, at) => (at % 2 ? <Code key={at}>{part}</Code> : <span key={at}>{part}</span>));
}
