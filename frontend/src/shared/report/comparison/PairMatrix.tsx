import { Card, Popover, Stack, Table, Text, UnstyledButton } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import type { SourceName } from "../ItemsLink";
import { PairDetails } from "./PairDetails";
import { type Pair, pairOf, shadeOf } from "./pairs";

interface Properties {
  comparison: Schemas["Comparison"];
  source?: SourceName;
  names: string[];
}

/** Every pair of entrants: a matrix of win rates, in which each cell opens its pair. */
export function PairMatrix({ comparison, source, names }: Properties) {
  const { pairs } = comparison;
  if (!pairs.length) return null;
  if (pairs.length === 1) {
    return (
      <Card withBorder padding="sm">
        <PairDetails pair={pairOf(pairs, names[0]!, names[1]!) ?? pairs[0]!} source={source} />
      </Card>
    );
  }
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
                  return (
                    <Table.Td key={b} p={2} ta="center">
                      <Cell pair={pair} rate={rate} source={source} />
                    </Table.Td>
                  );
                })}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Stack>
  );
}

/** A win rate, with all figures of its pair next to it while it is open. */
function Cell({ pair, rate, source }: { pair: Pair; rate: number; source?: SourceName }) {
  const [open, setOpen] = useState(false);
  const shown = `${Math.round(100 * rate)}%`;
  return (
    <Popover
      opened={open}
      onChange={setOpen}
      position="right-start"
      width="min(480px, 94vw)"
      shadow="md"
      withArrow
      trapFocus
      returnFocus
    >
      <Popover.Target>
        <UnstyledButton
          className="pair-cell"
          aria-label={`${pair.a} against ${pair.b}: ${shown}${pair.significant ? ", significant" : ""}`}
          style={{ background: shadeOf(rate), fontWeight: pair.significant ? 650 : undefined }}
          onClick={() => setOpen(!open)}
        >
          {shown}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <PairDetails pair={pair} source={source} />
      </Popover.Dropdown>
    </Popover>
  );
}
