import { Stack, Text } from "@mantine/core";

/** A conversation, one turn below the other. */
export function Turns({ turns }: { turns: { role: string; content: string }[] }) {
  return (
    <Stack gap={6}>
      {turns.map((turn, at) => (
        <div key={at}>
          <Text size="xs" c="dimmed">
            {turn.role}
          </Text>
          <pre className="text">{turn.content}</pre>
        </div>
      ))}
    </Stack>
  );
}
