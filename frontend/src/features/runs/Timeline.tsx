import { Stack, Text, Timeline as MantineTimeline, Title } from "@mantine/core";
import type { RunDetail } from "../../api/runs/runs";
import { DataTable } from "../../shared/tables/DataTable";
import { seconds } from "../../shared/format";
import { StateBadge } from "../../shared/StateBadge";
import { WithCode } from "../../shared/text/WithCode";

/** Every change of state with its reason, and what each attempt cost. */
export function Timeline({ run }: { run: RunDetail }) {
  return (
    <Stack gap="xl">
      <MantineTimeline bulletSize={14} lineWidth={2} active={run.timeline.length}>
        {run.timeline.map((change, at) => (
          <MantineTimeline.Item key={at} title={<StateBadge state={change.to_state} />}>
            <Text size="sm">
              <WithCode text={change.reason} />
            </Text>
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
          <DataTable
            label="Attempts"
            rows={run.attempts}
            keyOf={(attempt) => String(attempt.attempt)}
            columns={[
              { title: "#", cell: (attempt) => attempt.attempt },
              {
                title: "Worker",
                cell: (attempt) => <span style={{ overflowWrap: "anywhere" }}>{attempt.worker}</span>,
              },
              { title: "Devices", wide: true, cell: (attempt) => attempt.devices },
              { title: "Device time", cell: (attempt) => seconds(attempt.device_seconds) },
              {
                title: "Ended",
                cell: ({ outcome, reason }) => (
                  <span style={{ overflowWrap: "anywhere" }}>
                    {outcome ?? "still running"}
                    {reason && reason !== outcome ? `: ${reason}` : ""}
                  </span>
                ),
              },
            ]}
          />
        </div>
      )}
    </Stack>
  );
}
