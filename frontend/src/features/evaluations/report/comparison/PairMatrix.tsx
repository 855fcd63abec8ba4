import { Card, Stack, Table, Text, Title, UnstyledButton } from "@mantine/core";
import { useId, useState } from "react";
import type { Schemas } from "../../../../api/client";
import { Facts } from "../../../../shared/Facts";
import { count } from "../../../../shared/format/format";
import { asPercent, Figure, pValue } from "../Figure";
import { type Pair, pairOf, shadeOf } from "./pairs";

/** Every pair of entrants: a matrix of win rates, in which each cell opens its pair. */
export function PairMatrix({ comparison, names }: { comparison: Schemas["Comparison"]; names: string[] }) {
  const [shown, setShown] = useState<[string, string] | null>(null);
  const id = useId();
  const { pairs } = comparison;
  if (!pairs.length) return null;
  if (pairs.length === 1) return <PairDetails pair={pairOf(pairs, names[0]!, names[1]!) ?? pairs[0]!} />;
  const open = shown && pairOf(pairs, ...shown);
  return (
    <Stack gap="xs">
      <Text size="xs" c="dimmed">
        How often the entrant of the row wins against that of the column, a tie counting half. Bold:
        significant after Holm. Choose a cell for its figures.
      </Text>
      <Table.ScrollContainer
        minWidth={110 + 70 * names.length}
        scrollAreaProps={{ viewportProps: { tabIndex: 0, role: "group", "aria-label": "Win rates" } }}
      >
        <Table aria-label="Win rate of the row against the column" withRowBorders={false}>
          <Table.Thead>
            <Table.Tr>
              <Table.Td />
              {names.map((name) => (
                <Table.Th key={name} scope="col" ta="center" style={{ overflowWrap: "anywhere" }}>
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {names.map((a) => (
              <Table.Tr key={a}>
                <Table.Th scope="row" style={{ overflowWrap: "anywhere" }}>
                  {a}
                </Table.Th>
                {names.map((b) => {
                  const pair = a === b ? undefined : pairOf(pairs, a, b);
                  const rate = pair?.win_rate.value;
                  if (!pair || rate === null || rate === undefined)
                    return (
                      <Table.Td key={b} ta="center" c="dimmed">
                        –
                      </Table.Td>
                    );
                  const here = shown?.[0] === a && shown[1] === b;
                  return (
                    <Table.Td key={b} p={2}>
                      <UnstyledButton
                        className="pair-cell"
                        aria-expanded={here}
                        aria-controls={id}
                        aria-label={`${a} against ${b}: ${asPercent(rate)}${pair.significant ? ", significant" : ""}`}
                        style={{ background: shadeOf(rate), fontWeight: pair.significant ? 650 : undefined }}
                        onClick={() => setShown(here ? null : [a, b])}
                      >
                        {`${Math.round(100 * rate)}%`}
                      </UnstyledButton>
                    </Table.Td>
                  );
                })}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <div id={id} aria-live="polite">
        {open && <PairDetails pair={open} />}
      </div>
    </Stack>
  );
}

function PairDetails({ pair }: { pair: Pair }) {
  return (
    <Card withBorder padding="sm" component="section" aria-label={`${pair.a} against ${pair.b}`}>
      <Title order={4} size="h6" mb="xs" style={{ overflowWrap: "anywhere" }}>
        {pair.a} against {pair.b}
      </Title>
      <Facts
        facts={[
          [
            "Wins / ties / losses",
            [pair.wins, pair.ties, pair.losses].map((n) => count(Number(n.toFixed(1)))).join(" / "),
          ],
          ["Win rate", <Figure key="rate" of={pair.win_rate} format={asPercent} />],
          ["Win rate at like length", <Figure key="matched" of={pair.length_matched} format={asPercent} />],
          [
            "Length-adjusted win rate",
            <Figure key="adjusted" of={pair.length_adjusted} format={asPercent} />,
          ],
          ["Difference", <Figure key="difference" of={pair.difference} />],
          ["p, Wilcoxon", pValue(pair.p)],
          ["p, Holm", pValue(pair.p_holm), pair.significant ? "significant" : "not significant"],
        ]}
      />
    </Card>
  );
}
