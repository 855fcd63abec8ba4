import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { DataTable, type Column } from "./tables/DataTable";
import { Empty } from "./Feedback";
import { count } from "./format/format";

interface Properties<T> {
  label: string;
  items: readonly T[];
  columns: readonly Column<T>[];
  below: (item: T) => React.ReactNode;
  /** What sorts them: a dataset's kind, a model's role. */
  sort: { name: string; of: (item: T) => string; all: string[] };
  /** There are older ones that the server did not send. */
  cut: boolean;
  /** Asks the server for those with a part of the name. */
  onSearchChange: (part: string) => void;
}

/** Things with names, to be narrowed by a part of the name and by their sort. */
export function NamedList<T extends { id: string; name: string }>({
  label,
  items,
  columns,
  below,
  sort,
  cut,
  onSearchChange,
}: Properties<T>) {
  const [part, setPart] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const wanted = part.trim().toLowerCase();
  const shown = items.filter(
    (one) => (!chosen || sort.of(one) === chosen) && one.name.toLowerCase().includes(wanted),
  );
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <TextInput
          aria-label="Part of the name"
          placeholder="Part of the name"
          leftSection={<IconSearch size={16} />}
          value={part}
          w={{ base: "100%", xs: 240 }}
          onChange={(event) => {
            setPart(event.currentTarget.value);
            onSearchChange(event.currentTarget.value);
          }}
        />
        <Select
          aria-label={sort.name}
          placeholder={`any ${sort.name.toLowerCase()}`}
          data={sort.all}
          value={chosen}
          onChange={setChosen}
          clearable
          w={{ base: "100%", xs: 160 }}
        />
      </Group>
      {shown.length ? (
        <DataTable label={label} rows={shown} columns={columns} below={below} keyOf={(one) => one.id} />
      ) : (
        <Empty
          title="None of them fits"
          action={
            <Button
              variant="default"
              onClick={() => {
                setPart("");
                onSearchChange("");
                setChosen(null);
              }}
            >
              Show all
            </Button>
          }
        />
      )}
      {cut && (
        <Text size="sm" c="dimmed">
          These are the newest {count(items.length)}. Older ones are found by a part of their name.
        </Text>
      )}
    </Stack>
  );
}
