import { Button, MultiSelect, Popover, Stack } from "@mantine/core";
import { IconColumns3 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ColumnName, columnsQuery } from "../../../api/runs/list";
import { chosen, DEFAULT, isDefault, othersOf, OWN, type TableLayout } from "./tableLayout";

const GROUPS: Record<ColumnName["source"], string> = {
  metric: "Metrics, the latest value",
  setting: "Settings",
  result: "Results",
  run: "Runs",
};
/** Options that are drawn at a time. */
const LIMIT = 100;

interface Properties {
  project: string;
  layout: TableLayout;
  onLayout: (some: Partial<TableLayout>) => void;
}

/** Which columns the list shows. Their order and widths are changed in its head. */
export function ColumnsButton({ project, layout, onLayout }: Properties) {
  const { columns } = layout;
  const known = useQuery(columnsQuery(project));
  const options = (source: ColumnName["source"]) =>
    (known.data ?? [])
      .filter((one) => one.source === source && one.name !== "name" && !(one.name in OWN))
      .filter((one) => source !== "run" || one.numbers)
      .flatMap((one) => [one.name, ...aggregates(one)]);
  const own = Object.entries(OWN).map(([value, label]) => ({ value, label }));
  const names = (Object.keys(GROUPS) as ColumnName["source"][]).map((source) => ({
    group: GROUPS[source],
    items: options(source),
  }));
  const listed = new Set(names.flatMap((one) => one.items));
  const others = othersOf(columns).filter((one) => !listed.has(one));
  const data = [...names, ...(others.length ? [{ group: "Others", items: others }] : [])];
  const added = othersOf(columns).length;
  return (
    <Popover width={340} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        <Button variant="default" leftSection={<IconColumns3 size={16} />}>
          {added ? `Columns (${added})` : "Columns"}
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 24px)" aria-label="Columns">
        <Stack gap="sm">
          <Button
            variant="default"
            size="compact-sm"
            disabled={isDefault(layout)}
            onClick={() => onLayout(DEFAULT)}
          >
            Reset the columns
          </Button>
          <MultiSelect
            data-autofocus
            // The options would cover the button above.
            openOnFocus={false}
            label="Columns"
            description="Drag a heading of the list to move its column, and its edge to set the width."
            placeholder={columns.length ? "" : "Part of the name"}
            data={[{ group: "In every list", items: own }, ...data]}
            value={columns}
            onChange={(next) => onLayout({ columns: chosen(columns, next) })}
            searchable
            clearable
            hidePickedOptions
            limit={LIMIT}
            maxValues={26}
            comboboxProps={{ withinPortal: false }}
            nothingFoundMessage="No run has such a value"
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function aggregates(one: ColumnName): string[] {
  if (one.source !== "metric") return [];
  const ends = ["min", "max", ...(one.better ? ["best"] : [])];
  return ends.map((end) => `${one.name}.${end}`);
}
