import { Table, Text } from "@mantine/core";
import type { Run } from "../../api/runs/runs";
import { useNow } from "../format/clock";
import { seconds } from "../format/format";
import { Link, useProject } from "../links";
import { RunProgress } from "../Progress";
import { runName } from "../format/runName";
import { timeTaken } from "../format/runTime";
import { RunBadge } from "../StateBadge";
import { When } from "../When";
import { WithCode } from "../text/WithCode";
import { ResumeRun } from "./ResumeRun";
import { RunTimes } from "./RunTimes";

interface Properties {
  runs: Run[];
  label: string;
  /** Where queued runs stand: "2 of 7". */
  places?: ReadonlyMap<string, string>;
}

export function RunsTable({ runs, label, places }: Properties) {
  const project = useProject();
  const now = useNow();
  return (
    <Table.ScrollContainer minWidth={340}>
      <Table aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Run</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th visibleFrom="sm">Kind</Table.Th>
            <Table.Th visibleFrom="sm">Duration</Table.Th>
            <Table.Th visibleFrom="sm">Device time</Table.Th>
            <Table.Th visibleFrom="sm">Created</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.id} data-run={run.name}>
              <Table.Td>
                <Link to="/p/$project/runs/$run" params={{ project, run: run.id }} size="sm" fw={550}>
                  {runName(run)}
                </Link>
                <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
                  {run.method ?? run.kind}
                  {run.started_at && `, ${seconds(timeTaken(run, now))}`}, <When at={run.created_at} />
                </Text>
                {run.state === "failed" && (
                  <Text size="xs" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
                    {run.reason_code && <b>{run.reason_code}: </b>}
                    <WithCode text={run.reason} />
                  </Text>
                )}
                {run.state === "paused" && (
                  <Text size="xs" c="dimmed" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
                    <WithCode text={run.reason} />
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <RunBadge run={run} />
                {places?.has(run.id) && (
                  <Text size="xs" c="dimmed" mt={2}>
                    place {places.get(run.id)}
                  </Text>
                )}
                <RunProgress run={run} />
                {run.state === "paused" && <ResumeRun run={run} />}
              </Table.Td>
              <RunTimes run={run} now={now} />
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
