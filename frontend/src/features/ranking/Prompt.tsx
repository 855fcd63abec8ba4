import { Box, Button, Paper, Spoiler, Stack, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import type { Task } from "../../api/evaluation/ranking";
import { TextViewSwitch } from "../../shared/text/markdown/TextViewSwitch";
import { Prose } from "./Prose";

/** The prompt. Of a conversation, the last turn is shown, and the earlier ones on request. */
export function Prompt({ messages }: { messages: Task["prompt"]["messages"] }) {
  const phone = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const [opened, { toggle }] = useDisclosure();
  const earlier = messages.slice(0, -1);
  const shown = opened ? messages : messages.slice(-1);
  return (
    <Paper withBorder px="sm" py="xs" className="rank-prompt" component="section" aria-label="Prompt">
      <Box className="rank-view">
        <TextViewSwitch />
      </Box>
      {earlier.length > 0 && (
        <Button variant="subtle" size="compact-xs" mb={4} onClick={toggle} aria-expanded={opened}>
          {opened
            ? "Hide earlier messages"
            : `Show ${earlier.length === 1 ? "the message" : `the ${earlier.length} messages`} before this one`}
        </Button>
      )}
      <Spoiler
        key={String(opened)}
        maxHeight={opened ? 100_000 : phone ? 76 : 100}
        showLabel="Show the whole prompt"
        hideLabel="Show less"
      >
        <Stack gap="xs">
          {shown.map((message, at) => (
            <div key={at}>
              {earlier.length > 0 && (
                <Text size="xs" c="dimmed">
                  {message.role}
                </Text>
              )}
              <Prose text={message.content ?? ""} />
            </div>
          ))}
        </Stack>
      </Spoiler>
    </Paper>
  );
}
