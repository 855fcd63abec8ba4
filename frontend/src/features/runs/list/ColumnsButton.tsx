import { Button, MultiSelect, Popover } from "@mantine/core";
import { IconColumns3 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ColumnName, columnsQuery } from "../../../api/runs/list";

const GROUPS: Record<ColumnName["source"], string> = {
  metric: "Metrics, the latest value",
  setting: "Settings",
  result: "Results",
  run: "Runs",
};
/** Columns that every run has already. */
const ALWAYS = ["name", "state", "kind", "created", "duration", "device_seconds"];
/** Options that are drawn at a time. */
const LIMIT = 100;

interface Properties {
  project: string;
  columns: string[];
  onColumns: (columns: string[]) => void;
}

/** Which settings, metrics and results the list shows. */
export function ColumnsButton({ project, columns, onColumns }: Properties) {
  const known = useQuery(columnsQuery(project));
  const options = (source: ColumnName["source"]) =>
    (known.data ?? [])
      .filter((one) => one.source === source && !ALWAYS.includes(one.name))
      .filter((one) => source !== "run" || one.numbers)
      .flatMap((one) => [one.name, ...aggregates(one)]);
  const names = (Object.keys(GROUPS) as ColumnName["source"][]).map((source) => ({
    group: GROUPS[source],
    items: options(source),
  }));
  const listed = new Set(names.flatMap((one) => one.items));
  const others = columns.filter((one) => !listed.has(one));
  return (
    <Popover width={340} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        <Button variant="default" leftSection={<IconColumns3 size={16} />}>
          {columns.length ? `Columns (${columns.length})` : "Columns"}
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 24px)" aria-label="Columns">
        <MultiSelect
          label="Columns"
          description="Settings, metrics and results of the runs"
          placeholder={columns.length ? "" : "Part of the name"}
          data={others.length ? [...names, { group: "Others", items: others }] : names}
          value={columns}
          onChange={onColumns}
          searchable
          clearable
          hidePickedOptions
          limit={LIMIT}
          maxValues={20}
          comboboxProps={{ withinPortal: false }}
          nothingFoundMessage="No run has such a value"
        />
      </Popover.Dropdown>
    </Popover>
  );
}

function aggregates(one: ColumnName): string[] {
  if (one.source !== "metric") return [];
  const ends = ["min", "max", ...(one.better ? ["best"] : [])];
  return ends.map((end) => `${one.name}.${end}`);
}
