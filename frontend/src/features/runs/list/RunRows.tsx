import { Checkbox, Table } from "@mantine/core";
import type { CSSProperties } from "react";
import type { RunRow } from "../../../api/runs/runs";
import { useNow } from "../../../shared/format/clock";
import { runName } from "../../../shared/format/runName";
import { ColumnHeading } from "./ColumnHeading";
import { widthName } from "./ColumnWidth";
import { NameOfRun, RunCell } from "./RunCell";
import { SortableColumns } from "./SortableColumns";
import { moved, OWN, type TableLayout, WIDE, withWidth } from "./tableLayout";

interface Properties {
  runs: RunRow[];
  layout: TableLayout;
  onLayout: (some: Partial<TableLayout>) => void;
  sort: string;
  onSort: (sort: string) => void;
  chosen: ReadonlySet<string>;
  onChoose: (runs: string[], chosen: boolean) => void;
}

/** What the name and the state take at least, and what another column does. */
const LEAST = { base: 340, column: 110 };

/**
 * The list of runs. Every heading sorts on the server, moves its column when it is dragged, and has an edge that sets
 * its width. The head and, on a wide screen, the name stay in sight while the rest scrolls.
 */
export function RunRows({ runs, layout, onLayout, sort, onSort, chosen, onChoose }: Properties) {
  const now = useNow();
  const { columns, widths } = layout;
  const all = runs.every((run) => chosen.has(run.id));
  const set = (column: string) => (width: number | undefined) =>
    onLayout({ widths: withWidth(widths, column, width) });
  const heading = { sort, onSort };
  const key = keyMetricOf(runs);
  const others = columns.filter((column) => !(column in OWN)).length;
  const sizes = Object.fromEntries(
    Object.entries(widths).map(([column, width]) => [widthName(column), `${width}px`]),
  ) as CSSProperties;
  return (
    <SortableColumns
      columns={columns}
      titleOf={titleOf}
      onMove={(column, to) => onLayout({ columns: moved(columns, column, to) })}
    >
      <div className="run-table">
        <Table
          aria-label={sort === "-created" ? "Runs, the newest first" : "Runs"}
          highlightOnHover
          style={{ ...sizes, minWidth: LEAST.base + LEAST.column * others }}
        >
          <Table.Thead>
            <Table.Tr>
              <Table.Th className="run-choice">
                <Checkbox
                  aria-label="Select all that are shown"
                  checked={all}
                  indeterminate={!all && runs.some((run) => chosen.has(run.id))}
                  onChange={(event) =>
                    onChoose(
                      runs.map((run) => run.id),
                      event.currentTarget.checked,
                    )
                  }
                />
              </Table.Th>
              <ColumnHeading
                {...heading}
                title="Run"
                column="name"
                field="name"
                width={widths.name}
                onWidth={set("name")}
                fixed
              />
              {columns.map((column) => (
                <ColumnHeading
                  key={column}
                  {...heading}
                  title={titleOf(column)}
                  column={column}
                  field={column === "key_metric" ? key : column}
                  width={widths[column]}
                  onWidth={set(column)}
                  wide={WIDE.includes(column)}
                  right={isRight(column)}
                  style={styleOf(column)}
                />
              ))}
              {widths.name !== undefined && <Filler />}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {runs.map((run) => (
              <Table.Tr key={run.id} data-run={run.name} data-selected={chosen.has(run.id) || undefined}>
                <Table.Td className="run-choice">
                  <Checkbox
                    aria-label={`Select ${runName(run)}`}
                    checked={chosen.has(run.id)}
                    onChange={(event) => onChoose([run.id], event.currentTarget.checked)}
                  />
                </Table.Td>
                <Table.Td className="run-name">
                  <NameOfRun run={run} now={now} />
                </Table.Td>
                {columns.map((column) => (
                  <Table.Td
                    key={column}
                    ta={isRight(column) ? "right" : undefined}
                    className="run-cell"
                    data-column={column}
                    visibleFrom={WIDE.includes(column) ? "sm" : undefined}
                    style={styleOf(column)}
                  >
                    <RunCell run={run} column={column} now={now} />
                  </Table.Td>
                ))}
                {widths.name !== undefined && <Filler />}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </SortableColumns>
  );
}

const titleOf = (column: string) => OWN[column] ?? column;

const isRight = (column: string) => !(column in OWN) || column === "key_metric";

/** Takes what columns of chosen widths leave, so that they are not stretched. */
const Filler = () => <Table.Td aria-hidden className="run-filler" />;

function styleOf(column: string): CSSProperties {
  const name = widthName(column);
  return { width: `var(${name})`, minWidth: `var(${name})`, maxWidth: `var(${name})` };
}

/** The metric that the column of key metrics sorts by: that of all runs which have one, if it is the same. */
function keyMetricOf(runs: readonly RunRow[]): string | undefined {
  const [name, ...others] = new Set(runs.flatMap((run) => run.key_metric?.name ?? []));
  return others.length ? undefined : name;
}
