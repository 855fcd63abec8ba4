import { Alert, Stack, Table, Text } from "@mantine/core";
import { IconMedal, IconScale } from "@tabler/icons-react";
import type { Schemas } from "../../../api/client";
import { count } from "../../../shared/format/format";
import { asPercent, Figure, plain, pValue } from "./figures";

type Comparison = Schemas["Comparison"];

/** One source's comparison of the entrants: the winner, the means, and every pair. */
export function ComparisonView({
  comparison,
  score,
  format = plain(2),
}: {
  comparison: Comparison;
  /** What the mean is of. */
  score: string;
  format?: (value: number) => string;
}) {
  const strengths = new Map(comparison.bradley_terry.map((row) => [row.entrant, row.strength]));
  if (!comparison.items) {
    return (
      <Text size="sm" c="dimmed">
        {comparison.why}
      </Text>
    );
  }
  return (
    <Stack>
      <Alert
        variant="light"
        color={comparison.winner ? "teal" : "gray"}
        icon={comparison.winner ? <IconMedal /> : <IconScale />}
        title={comparison.winner ? `${comparison.winner} wins` : "No winner"}
      >
        <Text size="sm">{comparison.why}</Text>
        {comparison.friedman && (
          <Text size="xs" c="dimmed" mt={4}>
            Friedman over all {count(comparison.friedman.entrants)} entrants and{" "}
            {count(comparison.friedman.items)} items: χ² = {comparison.friedman.statistic.toFixed(2)}, p{" "}
            {pValue(comparison.friedman.p)}.
          </Text>
        )}
      </Alert>
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
            {[...comparison.scores]
              .sort((a, b) => (b.mean.value ?? -Infinity) - (a.mean.value ?? -Infinity))
              .map((row) => (
                <Table.Tr key={row.entrant}>
                  <Table.Td fw={row.entrant === comparison.winner ? 650 : undefined}>{row.entrant}</Table.Td>
                  <Table.Td ta="right">
                    <Figure of={row.mean} format={format} />
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
      <Pairs comparison={comparison} />
    </Stack>
  );
}

function Pairs({ comparison }: { comparison: Comparison }) {
  if (!comparison.pairs.length) return null;
  return (
    <Table.ScrollContainer minWidth={620}>
      <Table aria-label="Every pair of entrants">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Pair</Table.Th>
            <Table.Th ta="right">Wins, ties, losses</Table.Th>
            <Table.Th ta="right">Win rate</Table.Th>
            <Table.Th ta="right">Difference</Table.Th>
            <Table.Th ta="right">p, Wilcoxon</Table.Th>
            <Table.Th ta="right">p, Holm</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {comparison.pairs.map((pair) => (
            <Table.Tr key={`${pair.a} ${pair.b}`}>
              <Table.Td>
                {pair.a}{" "}
                <Text span c="dimmed">
                  against
                </Text>{" "}
                {pair.b}
              </Table.Td>
              <Table.Td ta="right">
                {[pair.wins, pair.ties, pair.losses].map((n) => count(Number(n.toFixed(1)))).join(" / ")}
              </Table.Td>
              <Table.Td ta="right">
                <Figure of={pair.win_rate} format={asPercent} />
              </Table.Td>
              <Table.Td ta="right">
                <Figure of={pair.difference} />
              </Table.Td>
              <Table.Td ta="right">{pValue(pair.p)}</Table.Td>
              <Table.Td ta="right" fw={pair.significant ? 650 : undefined}>
                {pValue(pair.p_holm)}
                {pair.significant && (
                  <Text span size="xs" c="dimmed" display="block">
                    significant
                  </Text>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
