import { Button, Card, CloseButton, Group, Input, Select, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { type ComponentType, type ReactNode, useState } from "react";
import { itemFaults } from "../../shared/forms/faults";
import { itemErrors, itemsOf, itemText, kindOf, newItem, withText } from "../../shared/forms/fieldValues";
import type { Field } from "../../shared/forms/schemaFields";
import { WithCode } from "../../shared/text/WithCode";

/** The properties of what shows the fields of a config, or of an item of a list. */
export interface FieldsProperties {
  fields: Field[];
  texts: Record<string, string>;
  errors: Record<string, string>;
  /** What the server found wrong, by place: `lr`, or `rules.0.pattern` of an item of a list. */
  faults?: Record<string, string>;
  onChange: (name: string, text: string) => void;
}

interface Properties {
  /** An item may have lists, too. */
  Fields: ComponentType<FieldsProperties>;
  field: Field;
  about: ReactNode;
  text: string;
  error?: string;
  /** The server's faults, by place: `0.pattern`. */
  faults: Record<string, string>;
  onChange: (text: string) => void;
}

/** A list of a config, item by item: each has the fields of its kind. */
export function ListField({ Fields, field, about, text, error, faults, onChange }: Properties) {
  const items = itemsOf(text);
  const kinds = field.items ?? [];
  const named = kinds.filter((kind) => kind.kind).map((kind) => kind.kind);
  // What is still empty is not a mistake before someone was there.
  const [touched, touch] = useState<ReadonlySet<string>>(new Set());
  const set = (next: unknown[]) => onChange(JSON.stringify(next));
  const put = (at: number, item: unknown) => set(items.map((one, place) => (place === at ? item : one)));
  return (
    <Input.Wrapper
      label={field.name}
      labelElement="div"
      description={about}
      required={field.required}
      error={touched.size > 0 || items.length === 0 ? error : undefined}
      role="group"
      aria-label={field.name}
      style={{ gridColumn: "1 / -1" }}
    >
      <Stack gap="xs" mt="xs">
        {items.map((item, at) => {
          const kind = kindOf(field, item);
          const fields = kind.fields.map((one) =>
            one.name ? one : { ...one, name: `${field.name} ${at + 1}` },
          );
          const real = (name: string) => kind.fields[fields.findIndex((one) => one.name === name)]!;
          const wrong = itemErrors(field, item);
          const found = itemFaults(faults, at, kind);
          const shown = (name: string) => touched.has(`${at} ${name}`) || itemText(real(name), item) !== "";
          return (
            <Card key={at} withBorder p="sm" role="group" aria-label={`${field.name} ${at + 1}`}>
              <Group justify="space-between" align="flex-start" wrap="nowrap" mb={fields.length ? "xs" : 0}>
                {named.length > 0 ? (
                  <Select
                    aria-label={`Kind of ${field.name} ${at + 1}`}
                    data={named}
                    value={kind.kind}
                    allowDeselect={false}
                    onChange={(name) => put(at, newItem(kinds.find((one) => one.kind === name) ?? kind))}
                  />
                ) : (
                  <Text size="sm" c="dimmed">
                    {at + 1}
                  </Text>
                )}
                <CloseButton
                  aria-label={`Remove ${field.name} ${at + 1}`}
                  onClick={() => {
                    touch(new Set());
                    set(items.filter((_, place) => place !== at));
                  }}
                />
              </Group>
              {kind.description && (
                <Text size="xs" c="dimmed" mb="xs">
                  <WithCode text={kind.description} />
                </Text>
              )}
              <Fields
                fields={fields}
                texts={Object.fromEntries(
                  fields
                    .filter(({ name }) => shown(name))
                    .map(({ name }) => [name, itemText(real(name), item)]),
                )}
                errors={Object.fromEntries(fields.map(({ name }) => [name, wrong[real(name).name] ?? ""]))}
                faults={Object.fromEntries(fields.map(({ name }) => [name, found[real(name).name] ?? ""]))}
                onChange={(name, typed) => {
                  touch(new Set([...touched, `${at} ${name}`]));
                  put(at, withText(real(name), item, typed));
                }}
              />
              {found[""] && kind.fields[0]?.name !== "" && <Input.Error mt="xs">{found[""]}</Input.Error>}
            </Card>
          );
        })}
        <Group>
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={14} />}
            aria-label={`Add to ${field.name}`}
            onClick={() => set([...items, newItem(kinds[0]!)])}
          >
            Add
          </Button>
        </Group>
      </Stack>
    </Input.Wrapper>
  );
}
