import { Table, Text } from "@mantine/core";
import type { Run } from "../../api/runs/runs";
import { seconds } from "../format/format";
import { deviceTime, timeTaken } from "../format/runTime";
import { When } from "../When";

const NOWRAP = { whiteSpace: "nowrap" } as const;

/** The cells of a run that every list of runs ends with: kind, duration, device time and age. */
export function RunTimes({ run, now }: { run: Run; now: number }) {
  return (
    <>
      <Table.Td visibleFrom="sm" style={NOWRAP}>
        {run.method ?? run.kind}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={NOWRAP}>
        {seconds(timeTaken(run, now))}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={NOWRAP}>
        {run.reused_from_id ? (
          <Text size="sm" c="dimmed">
            reused
          </Text>
        ) : (
          // An attempt is counted when it ends, one that failed too.
          seconds(deviceTime(run) || (run.ended_at && run.started_at ? 0 : null))
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={NOWRAP}>
        <When at={run.created_at} />
      </Table.Td>
    </>
  );
}
