import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Run } from "../../api/runs/runs";
import { seconds } from "../format/format";
import { deviceTime, timeTaken } from "../format/runTime";
import { When } from "../When";

const NOWRAP = { whiteSpace: "nowrap" } as const;
const CELLS = ["kind", "duration", "device_seconds", "created"] as const;
type Cell = (typeof CELLS)[number];

/** The cells of a run that every list of runs ends with: kind, duration, device time and age. */
export function RunTimes({ run, now }: { run: Run; now: number }) {
  return CELLS.map((cell) => (
    <Table.Td key={cell} visibleFrom="sm" style={NOWRAP}>
      {timeCell(cell, run, now)}
    </Table.Td>
  ));
}

/** What is in one of them. */
export function timeCell(cell: Cell, run: Run, now: number): ReactNode {
  if (cell === "kind") return run.method ?? run.kind;
  if (cell === "duration") return seconds(timeTaken(run, now));
  if (cell === "created") return <When at={run.created_at} />;
  if (run.reused_from_id)
    return (
      <Text span size="sm" c="dimmed">
        reused
      </Text>
    );
  // An attempt is counted when it ends, one that failed too.
  return seconds(deviceTime(run) || (run.ended_at && run.started_at ? 0 : null));
}
