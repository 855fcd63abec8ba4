import { Alert, Badge, Group, Stack, Table, Text } from "@mantine/core";
import { count, counted } from "../format/format";
import { Link } from "../links";
import { ItemsLink } from "./ItemsLink";
import { asPercent, Figure, plain, type Report } from "./Figure";

const BY = { human: "people", judge: "judge", jury: "jury", reward: "reward model" } as const;

/** Do people, judges and reward models say the same? */
export function Agreement({ rows }: { rows: Report["agreement"] }) {
  return (
    <Table.ScrollContainer minWidth={640}>
      <Table aria-label="Agreement between sources">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Sources</Table.Th>
            <Table.Th ta="right">Same on an item</Table.Th>
            <Table.Th ta="right">Spearman of means</Table.Th>
            <Table.Th ta="right">Kendall tau-b</Table.Th>
            <Table.Th ta="right">Entrants, items</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={`${row.a_by} ${row.a} ${row.b_by} ${row.b}`}>
              <Table.Td>
                {row.a}{" "}
                <Text span size="xs" c="dimmed">
                  {BY[row.a_by]}
                </Text>{" "}
                and {row.b}{" "}
                <Text span size="xs" c="dimmed">
                  {BY[row.b_by]}
                </Text>
              </Table.Td>
              <Table.Td ta="right">
                <ItemsLink
                  search={{
                    source: `${row.a_by}:${row.a}`,
                    other: `${row.b_by}:${row.b}`,
                    outcome: "disagree",
                  }}
                >
                  <Figure of={row.item} format={asPercent} />
                </ItemsLink>
              </Table.Td>
              <Table.Td ta="right">
                <Figure of={row.spearman} />
              </Table.Td>
              <Table.Td ta="right">
                <Figure of={row.kendall} format={plain(2)} />
              </Table.Td>
              <Table.Td ta="right">
                {count(row.entrants)}, {count(row.items)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** Prompts that also occur in training data. */
export function Contamination({ report, project }: { report: Report; project: string }) {
  const { checked, exact, near, seen, prompts } = report.contamination;
  if (!checked.length) {
    return (
      <Text size="sm" c="dimmed">
        The prompts were not checked against any training data.
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      <Text size="sm">
        {count(exact)} of {counted(prompts, "prompt")} occur in {checked.join(", ")} as they are,{" "}
        {count(near)} nearly.
      </Text>
      {seen.length > 0 && (
        <Table.ScrollContainer minWidth={480}>
          <Table aria-label="Prompts seen in training">
            <Table.Tbody>
              {seen.slice(0, 50).map((one) => (
                <Table.Tr key={`${one.position} ${one.dataset} ${one.row}`}>
                  <Table.Td>
                    <ItemsLink search={{ item: one.position }}>prompt {one.question_id}</ItemsLink>
                  </Table.Td>
                  <Table.Td>
                    <Badge color={one.match === "exact" ? "red" : "orange"} className="state-badge">
                      {one.match}
                    </Badge>
                  </Table.Td>
                  <Table.Td>
                    <Link
                      to="/p/$project/datasets/$dataset"
                      params={{ project, dataset: one.dataset }}
                      search={{}}
                    >
                      {one.dataset}
                    </Link>
                    , row {count(one.row)}
                  </Table.Td>
                  <Table.Td ta="right">{asPercent(one.overlap)} of its n-grams</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {seen.length > 50 && (
        <Text size="sm" c="dimmed">
          and {count(seen.length - 50)} more, in the JSON document.
        </Text>
      )}
    </Stack>
  );
}

/** The alarm: the reward rises, and what does not depend on it does not. */
export function Hacking({ rows }: { rows: Report["hacking"] }) {
  return (
    <Stack gap="xs">
      {rows.map((row) => (
        <Alert
          key={row.entrant}
          color={row.alarm ? "red" : row.alarm === null ? "yellow" : "teal"}
          variant="light"
          title={
            <Group gap="xs">
              <Text span inherit className="alert-title">
                {row.entrant} against {row.vs}:{" "}
                {row.alarm ? "reward hacking likely" : row.alarm === null ? "inconclusive" : "no sign of it"}
              </Text>
            </Group>
          }
        >
          <Stack gap={4}>
            {row.reasons.map((reason) => (
              <Text key={reason} size="sm">
                {reason}
              </Text>
            ))}
            <Group gap="lg">
              {row.training_reward && (
                <Text size="sm" component="div">
                  Training reward wins <Figure of={row.training_reward} format={asPercent} stacked={false} />
                </Text>
              )}
              {row.independent && (
                <Text size="sm" component="div">
                  {row.independent_by} wins <Figure of={row.independent} format={asPercent} stacked={false} />
                </Text>
              )}
              {row.difference && (
                <Text size="sm" component="div">
                  Difference on the same items{" "}
                  <ItemsLink search={{ a: row.entrant, b: row.vs }}>
                    <Figure of={row.difference} format={asPercent} stacked={false} />
                  </ItemsLink>
                </Text>
              )}
              <Text size="sm" component="div">
                Length ratio <Figure of={row.length_ratio} stacked={false} />
              </Text>
            </Group>
          </Stack>
        </Alert>
      ))}
    </Stack>
  );
}
