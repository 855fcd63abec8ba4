import { ActionIcon, Button, Group, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { Schemas } from "../../api/client";

export type Criterion = Schemas["Criterion"];

/** The criteria of the paper's own questionnaire. */
const PAPER = [
  { name: "Helpfulness", description: "Detailed, clear and friendly." },
  { name: "Harmlessness", description: "Contains nothing harmful." },
];
const POINTS = 5;

interface Properties {
  /** Whether answers get scores by them, and no ranks. */
  scored: boolean;
  criteria: Criterion[];
  onChange: (criteria: Criterion[]) => void;
  error?: string;
}

export function Criteria({ scored, criteria, onChange, error }: Properties) {
  const scale = scored ? { points: POINTS } : {};
  const set = (at: number, change: Partial<Criterion>) =>
    onChange(criteria.map((one, place) => (place === at ? { ...one, ...change } : one)));
  const added = (more: Criterion[]) => onChange([...criteria, ...more.map((one) => ({ ...one, ...scale }))]);
  return (
    <Stack gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Criteria
        </Text>
        <Text size="xs" c="dimmed">
          {scored
            ? "Each has a scale from 1 up; say what its ends mean."
            : criteria.length
              ? "Each is a separate ranking, so every prompt takes that much longer."
              : "None: one overall ranking."}
        </Text>
      </div>
      {criteria.map((one, at) => (
        <Stack key={at} gap={4}>
          <Group gap="xs" align="flex-end" wrap="nowrap">
            <TextInput
              aria-label={`Criterion ${at + 1}`}
              placeholder="Helpfulness"
              value={one.name}
              w={170}
              onChange={(event) => set(at, { name: event.currentTarget.value })}
            />
            <TextInput
              aria-label={`What criterion ${at + 1} means`}
              placeholder="What it means"
              value={one.description}
              flex={1}
              onChange={(event) => set(at, { description: event.currentTarget.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              mb={4}
              aria-label={`Remove criterion ${at + 1}`}
              onClick={() => onChange(criteria.filter((_, place) => place !== at))}
            >
              <IconX size={16} />
            </ActionIcon>
          </Group>
          {scored && (
            <Group gap="xs" wrap="nowrap" pr={36}>
              <NumberInput
                aria-label={`Points of criterion ${at + 1}`}
                prefix="1 to "
                min={2}
                max={10}
                clampBehavior="strict"
                allowDecimal={false}
                w={90}
                value={one.points ?? POINTS}
                onChange={(value) => set(at, { points: Number(value) || POINTS })}
              />
              {(["low", "high"] as const).map((end) => (
                <TextInput
                  key={end}
                  aria-label={`What the ${end === "low" ? "lowest" : "highest"} score of criterion ${at + 1} means`}
                  placeholder={end === "low" ? "1 means" : `${one.points ?? POINTS} means`}
                  value={one[end] ?? ""}
                  flex={1}
                  onChange={(event) => set(at, { [end]: event.currentTarget.value || null })}
                />
              ))}
            </Group>
          )}
        </Stack>
      ))}
      {error && (
        <Text size="xs" c="red">
          {error}
        </Text>
      )}
      <Group gap="xs">
        <Button
          size="compact-sm"
          variant="default"
          disabled={criteria.length >= 8}
          onClick={() => added([{ name: "", description: "" }])}
        >
          Add a criterion
        </Button>
        {!criteria.length && (
          <Button size="compact-sm" variant="subtle" onClick={() => added(PAPER)}>
            Helpfulness and harmlessness
          </Button>
        )}
      </Group>
    </Stack>
  );
}
