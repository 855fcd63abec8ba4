import { Group, Progress, Table, Text } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { useNow } from "../format/clock";
import { seconds } from "../format/format";
import { deviceTime, pipelineTime } from "../format/runTime";
import { Link } from "../links";
import { NameCell } from "../marks/NameCell";
import { StateBadge } from "../StateBadge";
import { When } from "../When";

type Summary = Schemas["PipelineSummary"];

export function PipelinesTable({ project, items }: { project: string; items: Summary[] }) {
  const now = useNow();
  return (
    <Table.ScrollContainer minWidth={340}>
      <Table aria-label="Pipelines, the newest first">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Pipeline</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th w={{ base: 96, sm: 200 }}>Stages</Table.Th>
            <Table.Th visibleFrom="sm">Duration</Table.Th>
            <Table.Th visibleFrom="sm">Device time</Table.Th>
            <Table.Th visibleFrom="sm">Created</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((one) => {
            const total = Object.values(one.stages).reduce((sum, n) => sum + n, 0);
            const done = one.stages.succeeded ?? 0;
            return (
              <Table.Tr key={one.id}>
                <Table.Td>
                  <NameCell item={one.id} name={one.name}>
                    <Link
                      to="/p/$project/pipelines/$pipeline"
                      params={{ project, pipeline: one.name }}
                      size="sm"
                      fw={550}
                    >
                      {one.name}
                    </Link>
                  </NameCell>
                  <Text size="xs" c="dimmed">
                    {one.recipe}, by {one.created_by}
                  </Text>
                  <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
                    <When at={one.created_at} />
                  </Text>
                </Table.Td>
                <Table.Td>
                  <StateBadge state={one.state} />
                </Table.Td>
                <Table.Td>
                  <Group gap="xs" wrap="nowrap">
                    <Progress.Root style={{ flex: 1 }}>
                      <Progress.Section
                        value={(100 * done) / total}
                        color="green"
                        aria-label={`${done} of ${total} stages succeeded`}
                      />
                      <Progress.Section
                        value={(100 * (one.stages.failed ?? 0)) / total}
                        color="red"
                        aria-label={`${one.stages.failed ?? 0} failed`}
                      />
                    </Progress.Root>
                    <Text size="xs" c="dimmed">
                      {done}/{total}
                    </Text>
                  </Group>
                </Table.Td>
                <Table.Td visibleFrom="sm">{seconds(pipelineTime(one, now).took)}</Table.Td>
                <Table.Td visibleFrom="sm">{seconds(deviceTime(one) || (one.ended_at ? 0 : null))}</Table.Td>
                <Table.Td visibleFrom="sm">
                  <When at={one.created_at} />
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
