import { Stack, Table, Text, Timeline as MantineTimeline, Title } from "@mantine/core";
import type { RunDetail } from "../../api/runs";
import { seconds } from "../../shared/format";
import { StateBadge } from "../../shared/StateBadge";

/** Every change of state with its reason, and what each attempt cost. */
export function Timeline({ run }: { run: RunDetail }) {
  return (
    <Stack gap="xl">
      <MantineTimeline bulletSize={14} lineWidth={2} active={run.timeline.length}>
        {run.timeline.map((change, at) => (
          <MantineTimeline.Item key={at} title={<StateBadge state={change.to_state} />}>
            <Text size="sm">{change.reason}</Text>
            <Text size="xs" c="dimmed">
              {new Date(change.created_at).toLocaleString(undefined, {
                dateStyle: "medium",
                timeStyle: "medium",
              })}
              {change.attempt > 0 && `, attempt ${change.attempt}`}
            </Text>
          </MantineTimeline.Item>
        ))}
      </MantineTimeline>
      {run.attempts.length > 0 && (
        <div>
          <Title order={2} size="h5" mb="xs">
            Attempts
          </Title>
          <Table.ScrollContainer minWidth={560}>
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>#</Table.Th>
                  <Table.Th>Worker</Table.Th>
                  <Table.Th>Devices</Table.Th>
                  <Table.Th>Device time</Table.Th>
                  <Table.Th>Ended</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {run.attempts.map((attempt) => (
                  <Table.Tr key={attempt.attempt}>
                    <Table.Td>{attempt.attempt}</Table.Td>
                    <Table.Td>{attempt.worker}</Table.Td>
                    <Table.Td>{attempt.devices}</Table.Td>
                    <Table.Td>{seconds(attempt.device_seconds)}</Table.Td>
                    <Table.Td>
                      {attempt.outcome ?? "still at it"}
                      {attempt.reason && attempt.reason !== attempt.outcome ? `: ${attempt.reason}` : ""}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </div>
      )}
    </Stack>
  );
}
