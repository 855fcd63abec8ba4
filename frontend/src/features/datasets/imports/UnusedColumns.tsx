import { Alert, Button, Code, Group, Stack, Text } from "@mantine/core";
import type { Schemas } from "../../../api/client";

type Unused = Schemas["UnusedColumn"];

/** Columns that feed no field, each with what it could be. `onUse` maps one of them. */
export function UnusedColumns({ columns, onUse }: { columns: Unused[]; onUse: (column: Unused) => void }) {
  if (columns.length === 0) return null;
  return (
    <Alert
      color="yellow"
      title={columns.length === 1 ? "1 column is not used" : `${columns.length} columns are not used`}
    >
      <Stack gap={6}>
        {columns.map((column) => (
          <Group key={column.name} gap="xs">
            <Code style={{ overflowWrap: "anywhere" }}>{column.name}</Code>
            {!column.kept && <Text size="sm">is left out</Text>}
            {column.kind && column.field && (
              <Button variant="default" size="compact-xs" onClick={() => onUse(column)}>
                Use it as {column.field} of {column.kind}
              </Button>
            )}
          </Group>
        ))}
        <Text size="sm">
          {columns.some((column) => column.kept) &&
            "They are kept with each row and exported, but not used for training. "}
          To use one, choose it for a field above.
        </Text>
      </Stack>
    </Alert>
  );
}
