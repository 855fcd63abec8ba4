import {
  ActionIcon,
  Button,
  Checkbox,
  Group,
  Select,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { Schemas } from "../../api/client";
import { KINDS, MOST_CHOICES, MOST_QUESTIONS, type Question } from "./questionKinds";

interface Properties {
  questions: Question[];
  onChange: (questions: Question[]) => void;
  error?: string;
}

const NEW: Question = { label: "", help: "", kind: "one_choice", choices: [], required: true };

/** The owner's own questions about each item, next to the task. */
export function Questions({ questions, onChange, error }: Properties) {
  const set = (at: number, change: Partial<Question>) =>
    onChange(questions.map((one, place) => (place === at ? { ...one, ...change } : one)));
  return (
    <Stack gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Questions
        </Text>
        <Text size="xs" c="dimmed">
          {questions.length
            ? "Annotators answer them for every prompt, next to the task; they cannot be changed later."
            : "None: only the task."}
        </Text>
      </div>
      {questions.map((one, at) => (
        <Stack key={at} gap={4} role="group" aria-label={`Question ${at + 1}`}>
          <Group gap="xs" align="flex-end" wrap="nowrap">
            <TextInput
              aria-label="Label"
              placeholder="Is the prompt safe?"
              maxLength={200}
              value={one.label}
              flex={1}
              onChange={(event) => set(at, { label: event.currentTarget.value })}
            />
            <Select
              aria-label="Kind"
              allowDeselect={false}
              w={150}
              data={Object.entries(KINDS).map(([value, label]) => ({ value, label }))}
              value={one.kind}
              onChange={(kind) => set(at, { kind: kind as Schemas["Question"]["kind"] })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              mb={4}
              aria-label={`Remove question ${at + 1}`}
              onClick={() => onChange(questions.filter((_, place) => place !== at))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
          {one.kind !== "text" && (
            <TagsInput
              aria-label="Choices"
              placeholder={one.choices?.length ? "" : "Type a choice and press Enter"}
              pr={36}
              maxTags={MOST_CHOICES}
              value={one.choices ?? []}
              onChange={(choices) => set(at, { choices })}
            />
          )}
          <Group gap="sm" wrap="nowrap" pr={36}>
            <TextInput
              aria-label="Help"
              placeholder="What it means"
              maxLength={2000}
              value={one.help}
              flex={1}
              onChange={(event) => set(at, { help: event.currentTarget.value })}
            />
            <Checkbox
              label="Required"
              checked={one.required ?? true}
              onChange={(event) => set(at, { required: event.currentTarget.checked })}
            />
          </Group>
        </Stack>
      ))}
      {error && (
        <Text size="xs" c="red">
          {error}
        </Text>
      )}
      <Group>
        <Button
          size="compact-sm"
          variant="default"
          disabled={questions.length >= MOST_QUESTIONS}
          onClick={() => onChange([...questions, NEW])}
        >
          Add a question
        </Button>
      </Group>
    </Stack>
  );
}
