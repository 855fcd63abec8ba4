import { Checkbox, Table, Text } from "@mantine/core";
import type { Run } from "../api/runs";
import { useNow } from "./clock";
import { between, seconds } from "./format";
import { Link, useProject } from "./links";
import { RunProgress } from "./Progress";
import { StateBadge } from "./StateBadge";
import { When } from "./When";

interface Properties {
  runs: Run[];
  chosen?: ReadonlySet<string>;
  onChoose?: (run: string, chosen: boolean) => void;
  label: string;
}

export function RunsTable({ runs, chosen, onChoose, label }: Properties) {
  const project = useProject();
  const now = useNow();
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            {onChoose && <Table.Th w={36}>{""}</Table.Th>}
            <Table.Th>Run</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>Kind</Table.Th>
            <Table.Th>Took</Table.Th>
            <Table.Th>Device time</Table.Th>
            <Table.Th>Created</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.id} data-run={run.name}>
              {onChoose && (
                <Table.Td>
                  <Checkbox
                    aria-label={`Compare ${run.name}`}
                    checked={chosen?.has(run.id) ?? false}
                    onChange={(event) => onChoose(run.id, event.currentTarget.checked)}
                  />
                </Table.Td>
              )}
              <Table.Td>
                <Link to="/p/$project/runs/$run" params={{ project, run: run.id }} fw={550}>
                  {run.name}
                </Link>
                {run.state === "failed" && (
                  <Text size="xs" c="dimmed" lineClamp={2}>
                    {run.reason}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <StateBadge state={run.state} />
                <RunProgress run={run} />
              </Table.Td>
              <Table.Td>{run.method ?? run.kind}</Table.Td>
              <Table.Td>{seconds(between(run.started_at, run.ended_at, now))}</Table.Td>
              <Table.Td>
                {run.reused_from_id ? (
                  <Text size="sm" c="dimmed">
                    reused
                  </Text>
                ) : (
                  seconds(run.device_seconds)
                )}
              </Table.Td>
              <Table.Td>
                <When at={run.created_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
