import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface Properties {
  turns: { role: string; content: string }[];
  /** What is shown of some turns in place of their text, such as the same with marks. */
  shown?: ReadonlyMap<number, ReactNode>;
}

/** A conversation, one turn below the other. */
export function Turns({ turns, shown }: Properties) {
  return (
    <Stack gap={6}>
      {turns.map((turn, at) => (
        <div key={at}>
          <Text size="xs" c="dimmed">
            {turn.role}
          </Text>
          <pre className="text">{shown?.get(at) ?? turn.content}</pre>
        </div>
      ))}
    </Stack>
  );
}
