import { Button, Group, Stack, Textarea } from "@mantine/core";
import { IconSend } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface Properties {
  label: string;
  placeholder: string;
  sends: string;
  asking: boolean;
  /** Kept by the page, so that it outlives the box. */
  prompt: string;
  onPrompt: (prompt: string) => void;
  /** Resolves when the question has arrived; only then is the box emptied. */
  onSend: (prompt: string) => Promise<unknown>;
  beside?: ReactNode;
}

export function PromptBox(properties: Properties) {
  const { label, placeholder, sends, asking, prompt, onPrompt, onSend, beside } = properties;
  const send = () => {
    if (!prompt.trim() || asking) return;
    onSend(prompt).then(
      () => onPrompt(""),
      () => undefined,
    );
  };
  return (
    <Stack gap="xs">
      <Textarea
        label={label}
        placeholder={placeholder}
        autosize
        minRows={2}
        maxRows={10}
        maxLength={50_000}
        value={prompt}
        onChange={(event) => onPrompt(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
        }}
      />
      <Group justify="flex-end" align="flex-end" gap="xs">
        {beside}
        <Button
          leftSection={<IconSend size={16} />}
          loading={asking}
          disabled={!prompt.trim()}
          onClick={send}
        >
          {sends}
        </Button>
      </Group>
    </Stack>
  );
}
