import { Button, Group, Stack, Textarea } from "@mantine/core";
import { IconSend } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

interface Properties {
  label: string;
  placeholder: string;
  sends: string;
  asking: boolean;
  /** Resolves when the question has arrived; only then is the box emptied. */
  onSend: (prompt: string) => Promise<unknown>;
  beside?: ReactNode;
}

export function PromptBox({ label, placeholder, sends, asking, onSend, beside }: Properties) {
  const [prompt, setPrompt] = useState("");
  const send = () => {
    if (!prompt.trim() || asking) return;
    onSend(prompt).then(
      () => setPrompt(""),
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
        onChange={(event) => setPrompt(event.currentTarget.value)}
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
