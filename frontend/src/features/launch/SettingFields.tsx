import { Accordion, Badge, Group, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import type { Field } from "../../shared/forms/schemaFields";
import { ConfigFields } from "./ConfigFields";
import type { FieldsProperties } from "./ListField";
import { isFound, topicsOf } from "./settingTopics";

interface Properties extends Omit<FieldsProperties, "fields"> {
  /** What is always shown. */
  main: Field[];
  /** What is folded by topic. */
  rest: Field[];
  isChanged: (field: Field) => boolean;
  isWrong: (field: Field) => boolean;
}

/** The settings of a run: the main ones, and the others by topic, all of which one box searches. */
export function SettingFields({ main, rest, isChanged, isWrong, ...section }: Properties) {
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState<string[]>([]);
  const wanted = typed.trim();
  const shown = main.filter((field) => isFound(field, wanted));
  const topics = topicsOf(rest.filter((field) => isFound(field, wanted)));
  return (
    <>
      {rest.length > 0 && (
        <TextInput
          type="search"
          label="Find a setting"
          placeholder="Name or description"
          leftSection={<IconSearch size={16} />}
          maw={360}
          mb="md"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      <ConfigFields fields={shown} {...section} />
      {wanted && !shown.length && !topics.length && (
        <Text size="sm" c="dimmed">
          No setting has these words in its name or description.
        </Text>
      )}
      <Accordion
        variant="contained"
        multiple
        mt="lg"
        // What was found is seen; afterwards the topics are as they were.
        value={wanted ? topics.map(({ name }) => name) : open}
        onChange={(value) => !wanted && setOpen(value)}
      >
        {topics.map(({ name, fields }) => {
          const changed = fields.filter(isChanged).length;
          const wrong = fields.filter(isWrong).length;
          return (
            <Accordion.Item value={name} key={name}>
              <Accordion.Control>
                <Group gap="xs">
                  {name} ({fields.length}){changed > 0 && <Badge>{changed} changed</Badge>}
                  {wrong > 0 && <Badge color="red">{wrong} to correct</Badge>}
                </Group>
              </Accordion.Control>
              <Accordion.Panel>
                <ConfigFields fields={fields} {...section} />
              </Accordion.Panel>
            </Accordion.Item>
          );
        })}
      </Accordion>
    </>
  );
}
