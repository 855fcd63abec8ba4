import { Button, Code, Popover, ScrollArea, Stack, Table, Text, TextInput } from "@mantine/core";
import { IconHelp } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { columnsQuery } from "../../../api/runs/list";

const EXAMPLES: readonly [string, string][] = [
  ["judge tiny", "runs with both words in their name, settings, tags or notes"],
  ["eval_loss < 1.2", "by the latest value; eval_loss.min, .max and .best by the others"],
  ["lr = 1e-5", "by a setting"],
  ["state:failed,cancelled", "by either of two states"],
  ["tag:good -is:archived", "tagged, and not archived"],
  ["created > 7d", "started within the last seven days"],
  ["(state:failed or is:favourite) name:demo", "either, and a part of the name"],
];
/** Fields that are listed at a time. */
const SHOWN = 50;

/** What may be written in the filter, and the fields that there are. */
export function FilterHelp({ project, onAdd }: { project: string; onAdd: (field: string) => void }) {
  const [opened, open] = useState(false);
  return (
    <Popover opened={opened} onChange={open} width={420} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        <Button variant="default" leftSection={<IconHelp size={16} />} onClick={() => open(!opened)}>
          Help
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 24px)" aria-label="How to filter">
        <Stack gap="xs">
          <Table aria-label="Examples" withRowBorders={false} verticalSpacing={2}>
            <Table.Tbody>
              {EXAMPLES.map(([example, means]) => (
                <Table.Tr key={example}>
                  <Table.Td>
                    <Code>{example}</Code>
                    <Text size="xs" c="dimmed">
                      {means}
                    </Text>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
          {opened && (
            <FieldList
              project={project}
              onAdd={(field) => {
                onAdd(field);
                open(false);
              }}
            />
          )}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function FieldList({ project, onAdd }: { project: string; onAdd: (field: string) => void }) {
  const [part, setPart] = useState("");
  const columns = useQuery(columnsQuery(project));
  const fields = (columns.data ?? []).filter((one) => one.name.toLowerCase().includes(part.toLowerCase()));
  return (
    <>
      <TextInput
        label="Fields"
        placeholder="Part of the name"
        value={part}
        onChange={(event) => setPart(event.currentTarget.value)}
      />
      <ScrollArea.Autosize mah={220} type="auto" viewportProps={{ tabIndex: 0, "aria-label": "Fields" }}>
        <Stack gap={2} align="flex-start">
          {fields.slice(0, SHOWN).map((one) => (
            <Button
              key={one.name}
              variant="subtle"
              size="compact-sm"
              tt="none"
              onClick={() => onAdd(/[\s()"<>=!~:,]/.test(one.name) ? `"${one.name}"` : one.name)}
            >
              {one.name}
              <Text span size="xs" c="dimmed" ml={6}>
                {one.about || one.source}
              </Text>
            </Button>
          ))}
        </Stack>
      </ScrollArea.Autosize>
    </>
  );
}
