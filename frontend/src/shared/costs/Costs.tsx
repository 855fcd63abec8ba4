import { Box, Group, Stack, Table, Text } from "@mantine/core";
import { percent, seconds, counted } from "../format/format";
import { PhaseBar } from "./PhaseBar";
import classes from "./PhaseBar.module.css";
import { ABOUT, COLOURS, failedInWords, type Ledger, phasesOf } from "./phases";

export interface Cost {
  label: string;
  ledger: Ledger;
  /** More of it in words, such as what it shares with others. */
  about?: string;
}

/** A bar for each on one scale, what the colours mean, and all figures as a table. */
export function Costs({ costs, label }: { costs: Cost[]; label: string }) {
  const known = costs.filter(({ ledger }) => ledger.phases.length || ledger.failed_attempts);
  if (!known.length) return null;
  const longest = Math.max(
    ...known.map(({ ledger }) => ledger.device_seconds + ledger.failed_device_seconds),
  );
  const single = known.length === 1;
  return (
    <Stack gap="sm">
      {known.map(({ label, ledger, about }) => (
        <Box key={label}>
          <Group justify="space-between" gap="xs" mb={4}>
            <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }}>
              {single ? `${seconds(ledger.device_seconds)} of device time` : label}
            </Text>
            {!single && <Text size="sm">{seconds(ledger.device_seconds)}</Text>}
          </Group>
          <PhaseBar label={label} ledger={ledger} longest={longest} />
          <Text size="xs" c="dimmed" mt={2} component="div">
            {[failedInWords(ledger), reusedInWords(ledger), about].filter(Boolean).join("; ")}
          </Text>
        </Box>
      ))}
      <Legend costs={known} />
      <details>
        <Text component="summary" size="sm" style={{ cursor: "pointer" }}>
          Device time and tokens of each phase
        </Text>
        <Figures costs={known} label={label} />
      </details>
    </Stack>
  );
}

function reusedInWords({ reused, reused_device_seconds: spent }: Ledger): string {
  if (!reused.length) return "";
  const names = reused.length > 4 ? counted(reused.length, "stage") : reused.join(", ");
  return `${names} reused: ${seconds(spent)} of it was spent by earlier equal runs`;
}

function Legend({ costs }: { costs: Cost[] }) {
  const ledgers = costs.map((one) => one.ledger);
  return (
    <Group gap="sm" aria-hidden>
      {phasesOf(ledgers).map((phase) => (
        <Group key={phase} gap={4} wrap="nowrap" title={ABOUT[phase]}>
          <Box w={12} h={12} style={{ background: COLOURS[phase], borderRadius: 2 }} />
          <Text size="xs">{phase}</Text>
        </Group>
      ))}
      {ledgers.some((one) => one.failed_device_seconds > 0) && (
        <Group gap={4} wrap="nowrap">
          <Box w={14} h={12} className={classes.failed} />
          <Text size="xs">did not succeed</Text>
        </Group>
      )}
    </Group>
  );
}

function Figures({ costs, label }: { costs: Cost[]; label: string }) {
  const phases = phasesOf(costs.map((one) => one.ledger));
  const failed = costs.some(({ ledger }) => ledger.failed_attempts > 0);
  return (
    <Table.ScrollContainer
      minWidth={180 + 120 * costs.length}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, role: "group", "aria-label": label } }}
    >
      <Table aria-label={label} verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Phase</Table.Th>
            {costs.map((one) => (
              <Table.Th key={one.label} ta="right">
                {one.label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {phases.map((phase) => (
            <Table.Tr key={phase}>
              <Table.Th scope="row" fw={500}>
                {phase}
                <Text size="xs" c="dimmed" fw={400}>
                  {ABOUT[phase]}
                </Text>
              </Table.Th>
              {costs.map((one) => (
                <PhaseCell key={one.label} phase={phase} ledger={one.ledger} />
              ))}
            </Table.Tr>
          ))}
          <Table.Tr>
            <Table.Th scope="row">all phases</Table.Th>
            {costs.map((one) => (
              <Table.Td key={one.label} ta="right" fw={600}>
                {seconds(one.ledger.device_seconds)}
              </Table.Td>
            ))}
          </Table.Tr>
          {failed && (
            <Table.Tr>
              <Table.Th scope="row" fw={500}>
                did not succeed
                <Text size="xs" c="dimmed" fw={400}>
                  not in the sum
                </Text>
              </Table.Th>
              {costs.map(({ label, ledger }) => (
                <Table.Td key={label} ta="right">
                  {ledger.failed_attempts ? seconds(ledger.failed_device_seconds) : "–"}
                </Table.Td>
              ))}
            </Table.Tr>
          )}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function PhaseCell({ phase, ledger }: { phase: string; ledger: Ledger }) {
  const cost = ledger.phases.find((one) => one.phase === phase);
  if (!cost) return <Table.Td ta="right">–</Table.Td>;
  const share = ledger.device_seconds ? cost.device_seconds / ledger.device_seconds : 0;
  return (
    <Table.Td ta="right">
      {seconds(cost.device_seconds)}{" "}
      <Text span size="xs" c="dimmed">
        {percent(share, 0)}
      </Text>
      {cost.tokens > 0 && (
        <Text size="xs" c="dimmed">
          {counted(cost.tokens, "token")}
        </Text>
      )}
    </Table.Td>
  );
}
