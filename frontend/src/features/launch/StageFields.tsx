import { Accordion, Badge, Card, Group, SimpleGrid, Text, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { type Fault, faultOf } from "./recipeFaults";
import { StageForm } from "./StageForm";

type Stage = Schemas["PlannedStageOut"];

interface Properties {
  stages: Stage[];
  faults: Fault[];
  /** What was typed, by `stage.field`. */
  texts: Record<string, string>;
  onChange: (name: string, text: string) => void;
}

/** Every stage with its settings. What was typed stays where it was typed, also where it is wrong. */
export function StageFields({ stages, faults, texts, onChange }: Properties) {
  const [open, setOpen] = useState<string[]>([]);
  return (
    <Accordion variant="separated" multiple value={open} onChange={setOpen}>
      {stages.map((stage) => {
        const changed = Object.keys(texts).filter(
          (name) => name.startsWith(`${stage.name}.`) && texts[name] !== "",
        );
        const wrong = changed.filter((name) => faultOf(faults, name)).length;
        return (
          <Accordion.Item value={stage.name} key={stage.name}>
            <Accordion.Control>
              <Group gap="xs">
                <Text fw={600}>{stage.name}</Text>
                <Badge color="gray">{stage.method ?? stage.kind}</Badge>
                {stage.implied && <Badge color="indigo">added by the planner</Badge>}
                {changed.length > 0 && <Badge>{changed.length} changed</Badge>}
                {wrong > 0 && <Badge color="red">{wrong} to correct</Badge>}
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Text size="sm" c="dimmed" mb="sm">
                Reads{" "}
                {Object.entries(stage.inputs)
                  .map(([name, input]) => `${name} from ${input.name}`)
                  .join(", ") || "nothing"}
                .
              </Text>
              {stage.implied && <Text size="sm">Its settings follow from the recipe.</Text>}
              {!stage.implied && open.includes(stage.name) && (
                <StageForm
                  stage={stage}
                  faults={faults}
                  typed={typedIn(stage.name, texts)}
                  onChange={(field, text) => onChange(`${stage.name}.${field}`, text)}
                />
              )}
            </Accordion.Panel>
          </Accordion.Item>
        );
      })}
    </Accordion>
  );
}

/** By field. */
function typedIn(stage: string, texts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([name, text]) =>
      name.startsWith(`${stage}.`) ? [[name.slice(stage.length + 1), text]] : [],
    ),
  );
}

/** Settings of an earlier launch that the recipe has no place for any more, to be emptied. */
export function LostSettings({
  names,
  faults,
  texts,
  onChange,
}: Omit<Properties, "stages"> & { names: string[] }) {
  if (!names.length) return null;
  return (
    <Card withBorder>
      <Title order={3} size="h5">
        Settings that do not fit this recipe
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        Clear them, or change the YAML so that they fit.
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }}>
        {names.map((name) => (
          <TextInput
            key={name}
            label={name}
            value={texts[name]}
            error={faultOf(faults, name)?.message}
            onChange={(event) => onChange(name, event.currentTarget.value)}
          />
        ))}
      </SimpleGrid>
    </Card>
  );
}
