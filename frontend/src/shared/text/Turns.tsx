import { Code, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Call } from "./AnswerBody";
import { callText, type ToolCall } from "./answers";

interface Turn {
  role: string;
  content: string;
  /** What conversations with tools have besides; arguments and tools are JSON texts. */
  tool_calls?: ToolCall[] | null;
  name?: string | null;
  tools?: string | null;
}

interface Properties {
  turns: Turn[];
  /** What is shown of some turns in place of their text, such as the same with marks. */
  shown?: ReadonlyMap<number, ReactNode>;
}

/** A conversation, one turn below the other. */
export function Turns({ turns, shown }: Properties) {
  return (
    <Stack gap={6}>
      {turns[0]?.tools && <Tools text={turns[0].tools} />}
      {turns.map((turn, at) => (
        <div key={at}>
          <Text size="xs" c="dimmed">
            {turn.name ? `${turn.role} ${turn.name}` : turn.role}
          </Text>
          {(turn.content || !turn.tool_calls) && <pre className="text">{shown?.get(at) ?? turn.content}</pre>}
          {turn.tool_calls?.map((call, place) => (
            <Call key={place} text={callText(call)}>
              {callText(call)}
            </Call>
          ))}
        </div>
      ))}
    </Stack>
  );
}

function Tools({ text }: { text: string }) {
  return (
    <details>
      <summary>
        <Text span size="xs" c="dimmed">
          Tools: {toolNames(text).join(", ")}
        </Text>
      </summary>
      <Code block>{readable(text)}</Code>
    </details>
  );
}

/** A row that is shown in part has the beginning of its texts, which is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toolNames(text: string): string[] {
  const tools = parsed(text);
  if (!Array.isArray(tools)) return ["cut here"];
  return (tools as { function?: { name?: string } }[]).map((tool) => tool.function?.name ?? "?");
}

function readable(text: string): string {
  const tools = parsed(text);
  return tools === undefined ? text : JSON.stringify(tools, null, 2);
}
