import { Stack, Table, Text } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { counted } from "../../format/format";
import { Figure, plain, pValue } from "../Figure";
import { ItemsLink, type SourceName } from "../ItemsLink";
import { PairMatrix } from "./PairMatrix";

type Comparison = Schemas["Comparison"];

/** One source's comparison of the entrants: the means, and every pair. Who wins is the headline of its section. */
export function ComparisonView({
  comparison,
  source,
  score,
  format = plain(2),
}: {
  comparison: Comparison;
  /** Whose it is; none for what has no items of its own. */
  source?: SourceName;
  /** What the mean is of. */
  score: string;
  format?: (value: number) => string;
}) {
  const strengths = new Map(comparison.bradley_terry.map((row) => [row.entrant, row.strength]));
  const best = [...comparison.scores].sort(
    (a, b) => (b.mean.value ?? -Infinity) - (a.mean.value ?? -Infinity),
  );
  if (!comparison.items) return null;
  return (
    <Stack>
      {comparison.friedman && (
        <Text size="xs" c="dimmed">
          Friedman over all {counted(comparison.friedman.entrants, "entrant")} and{" "}
          {counted(comparison.friedman.items, "item")}: χ² = {comparison.friedman.statistic.toFixed(2)}, p{" "}
          {pValue(comparison.friedman.p)}.
        </Text>
      )}
      <Table.ScrollContainer minWidth={420}>
        <Table aria-label={`Entrants by ${score}`}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Entrant</Table.Th>
              <Table.Th ta="right">{score}</Table.Th>
              {strengths.size > 0 && <Table.Th ta="right">Bradley-Terry strength</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {best.map((row) => (
              <Table.Tr key={row.entrant}>
                <Table.Td fw={row.entrant === comparison.winner ? 650 : undefined}>{row.entrant}</Table.Td>
                <Table.Td ta="right">
                  {source ? (
                    <ItemsLink search={{ a: row.entrant, source }}>
                      <Figure of={row.mean} format={format} />
                    </ItemsLink>
                  ) : (
                    <Figure of={row.mean} format={format} />
                  )}
                </Table.Td>
                {strengths.size > 0 && (
                  <Table.Td ta="right">
                    <Figure of={strengths.get(row.entrant)} />
                  </Table.Td>
                )}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <PairMatrix comparison={comparison} source={source} names={best.map((row) => row.entrant)} />
    </Stack>
  );
}
