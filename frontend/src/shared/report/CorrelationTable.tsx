import { Table, Text } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { signed, counted } from "../format/format";

/** How rewards of the same answers go together: Pearson's r in each cell, and Spearman's rho below it. */
export function CorrelationTable({ of }: { of: Schemas["Correlations"] }) {
  return (
    <div>
      <Text size="sm" c="dimmed" mb="xs">
        Pearson’s r over {counted(of.n, "answer")}, and below it Spearman’s ρ.
      </Text>
      <Table.ScrollContainer minWidth={300}>
        <Table aria-label="Correlation of the rewards" w="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th />
              {of.names.map((name, at) => (
                <Table.Th key={at} ta="right">
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {of.names.map((name, row) => (
              <Table.Tr key={row}>
                <Table.Th scope="row" fw={500}>
                  {name}
                </Table.Th>
                {of.names.map((_, column) => (
                  <Table.Td key={column} ta="right">
                    {signed(of.pearson[row]?.[column])}
                    <Text size="xs" c="dimmed">
                      {signed(of.spearman[row]?.[column])}
                    </Text>
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </div>
  );
}
