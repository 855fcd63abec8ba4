import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";

export interface Column<T> {
  title: string;
  cell: (row: T) => ReactNode;
  /** A number, aligned to the right. */
  right?: boolean;
  /** Left out on a phone. */
  wide?: boolean;
}

interface Properties<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  /** What a phone shows in the first cell of what is left out there. */
  below?: (row: T) => ReactNode;
  /** Pixels below which it scrolls sideways. */
  minWidth?: number;
}

/** A table with a column for each fact. */
export function DataTable<T>({ label, rows, columns, keyOf, below, minWidth = 300 }: Properties<T>) {
  const place = ({ right, wide }: Column<T>) => ({
    ta: right ? ("right" as const) : undefined,
    visibleFrom: wide ? "sm" : undefined,
  });
  return (
    <Table.ScrollContainer minWidth={minWidth}>
      <Table aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column.title} {...place(column)}>
                {column.title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={keyOf(row)}>
              {columns.map((column, at) => (
                <Table.Td key={column.title} {...place(column)}>
                  {column.cell(row)}
                  {at === 0 && below && (
                    <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
                      {below(row)}
                    </Text>
                  )}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
