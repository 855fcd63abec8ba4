import { Badge, Stack, Text, Timeline as MantineTimeline, Title } from "@mantine/core";
import type { ReactNode } from "react";
import type { RunDetail } from "../../../api/runs/runs";
import { DataTable } from "../../../shared/tables/DataTable";
import { count, seconds } from "../../../shared/format/format";
import { show } from "../../../shared/forms/valueText";
import { DONE } from "../Findings";
import { StateBadge } from "../../../shared/StateBadge";
import { WithCode } from "../../../shared/text/WithCode";

interface Entry {
  at: string;
  title: ReactNode;
  text: string;
  about: string;
}

function entriesOf(run: RunDetail): Entry[] {
  const entries: Entry[] = [
    ...run.timeline.map((change) => ({
      at: change.created_at,
      title: <StateBadge state={change.to_state} />,
      text: change.reason,
      about: change.attempt > 0 ? `, attempt ${change.attempt}` : "",
    })),
    ...run.changes.map((change) => ({
      at: change.at,
      title: (
        <Badge color="grape" className="state-badge">
          settings changed
        </Badge>
      ),
      text: Object.entries(change.values)
        .map(([name, value]) => `${name} ${show(value)}`)
        .join(", "),
      about: `, by ${change.by}, ${change.step === null ? "not in force yet" : `from step ${count(change.step)} on`}`,
    })),
    ...run.findings.map((finding) => ({
      at: finding.at,
      title: (
        <Badge color="orange" className="state-badge">
          health: {finding.kind.replaceAll("_", " ")}
        </Badge>
      ),
      text: finding.reason,
      about: [`, step ${count(finding.step)}`, DONE[finding.action]].filter(Boolean).join(", "),
    })),
  ];
  return entries.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

/** Every change of state with its reason, settings that changed, health rules that held, and what each attempt cost. */
export function Timeline({ run }: { run: RunDetail }) {
  const entries = entriesOf(run);
  return (
    <Stack gap="xl">
      <MantineTimeline bulletSize={14} lineWidth={2} active={entries.length}>
        {entries.map((entry, at) => (
          <MantineTimeline.Item key={at} title={entry.title}>
            <Text size="sm">
              <WithCode text={entry.text} />
            </Text>
            <Text size="xs" c="dimmed">
              {new Date(entry.at).toLocaleString(undefined, {
                dateStyle: "medium",
                timeStyle: "medium",
              })}
              {entry.about}
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
              { title: "CPU threads", wide: true, cell: (attempt) => attempt.threads ?? "-" },
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
