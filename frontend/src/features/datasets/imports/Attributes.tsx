import { ActionIcon, Button, Group, Select, Stack, Text, TextInput, Title } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useState } from "react";
import type { Import } from "../../../api/datasets/imports";

const PREFIX = "attributes.";
// As `steerboard_contracts.attribute_names` has it; the server checks it again.
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/;

interface Properties {
  columns: Import["columns"];
  /** Fields to columns; those of attributes are `attributes.NAME`. */
  mapped: Record<string, string | null>;
  /** null takes the attribute away. */
  onMap: (field: string, column: string | null) => void;
}

/** Grades of an answer that have a column each, such as its verbosity. */
export function Attributes({ columns, mapped, onMap }: Properties) {
  const fields = Object.keys(mapped).filter((field) => field.startsWith(PREFIX) && mapped[field]);
  const data = columns.map(({ name, types }) => ({ value: name, label: `${name} · ${types.join(" or ")}` }));
  return (
    <Stack gap="xs" role="group" aria-label="Attributes">
      <div>
        <Title order={2} size="h6">
          Attributes
        </Title>
        <Text size="xs" c="dimmed">
          Grades of the answer in addition to its reward, one column each. A policy can be trained to take
          them as conditions.
        </Text>
      </div>
      {fields.map((field) => (
        <Group key={field} gap="xs" align="flex-end" wrap="nowrap">
          <Select
            label={field.slice(PREFIX.length)}
            searchable
            allowDeselect={false}
            flex={1}
            data={data}
            value={mapped[field] ?? null}
            onChange={(chosen) => chosen && onMap(field, chosen)}
          />
          <ActionIcon
            variant="default"
            size="input-sm"
            aria-label={`Leave out ${field.slice(PREFIX.length)}`}
            onClick={() => onMap(field, null)}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      <NewAttribute
        data={data}
        taken={fields.map((field) => field.slice(PREFIX.length))}
        onAdd={(name, column) => onMap(`${PREFIX}${name}`, column)}
      />
    </Stack>
  );
}

interface NewProperties {
  data: { value: string; label: string }[];
  taken: string[];
  onAdd: (name: string, column: string) => void;
}

function NewAttribute({ data, taken, onAdd }: NewProperties) {
  const [column, choose] = useState<string | null>(null);
  const [typed, type] = useState<string | null>(null);
  // The column's own name, where it may be one.
  const name = typed ?? (column !== null && NAME.test(column) ? column : "");
  const fault = taken.includes(name)
    ? "is in use already"
    : name && !NAME.test(name)
      ? "letters, digits, - and _; begins with a letter"
      : null;
  const add = () => {
    if (column === null || !name || fault) return;
    onAdd(name, column);
    choose(null);
    type(null);
  };
  return (
    <Group gap="xs" align="flex-start">
      <Select
        aria-label="Column of a new attribute"
        placeholder="a column of grades"
        searchable
        clearable
        flex="1 1 160px"
        data={data}
        value={column}
        onChange={choose}
      />
      <TextInput
        aria-label="Name of a new attribute"
        placeholder="its name"
        flex="1 1 120px"
        value={name}
        error={fault}
        onChange={(event) => type(event.currentTarget.value)}
      />
      <Button variant="default" disabled={column === null || !name || !!fault} onClick={add}>
        Add
      </Button>
    </Group>
  );
}
