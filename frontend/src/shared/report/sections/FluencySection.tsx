import { Table, Text } from "@mantine/core";
import { percent } from "../../format/format";
import { Figure, plain, type Report } from "../Figure";

type Fluency = NonNullable<Report["fluency"]>;

/** How fluent each entrant's answers are. */
export function FluencySection({ fluency }: { fluency: Fluency }) {
  const by = fluency.perplexity_by;
  return (
    <Table.ScrollContainer minWidth={680}>
      <Table aria-label="Entrants with perplexity, distinct n-grams, and empty, repeated and cut answers">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Entrant</Table.Th>
            {by && <Table.Th ta="right">Perplexity under {by}</Table.Th>}
            <Table.Th ta="right">Distinct-1</Table.Th>
            <Table.Th ta="right">Distinct-2</Table.Th>
            <Table.Th ta="right">Empty</Table.Th>
            <Table.Th ta="right">Repeated</Table.Th>
            <Table.Th ta="right">Cut</Table.Th>
            <Table.Th ta="right">Tokens</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {fluency.entrants.map((row) => (
            <Table.Tr key={row.entrant}>
              <Table.Td>
                {row.entrant}
                {row.why && (
                  <Text size="xs" c="dimmed">
                    No perplexity: {row.why}
                  </Text>
                )}
              </Table.Td>
              {by && (
                <Table.Td ta="right">
                  <Figure of={row.perplexity} />
                </Table.Td>
              )}
              <Table.Td ta="right">{fixed(row.distinct_1, 2)}</Table.Td>
              <Table.Td ta="right">{fixed(row.distinct_2, 2)}</Table.Td>
              <Table.Td ta="right">{percent(row.empty)}</Table.Td>
              <Table.Td ta="right">{percent(row.repeated)}</Table.Td>
              <Table.Td ta="right">{percent(row.cut)}</Table.Td>
              <Table.Td ta="right">{fixed(row.tokens, 1)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** What the section comes to in one line. */
export function fluencyHeadline({ entrants }: Fluency): string {
  const most = (name: "empty" | "repeated") => Math.max(0, ...entrants.map((row) => row[name] ?? 0));
  return `At most ${percent(most("empty"))} of an entrant's answers are empty, ${percent(most("repeated"))} repeated`;
}

function fixed(value: number | null, digits: number): string {
  return value === null ? "–" : plain(digits)(value);
}
