import { Progress, Text } from "@mantine/core";
import { count, seconds } from "./format/format";
import type { Run } from "../api/runs/runs";

interface Counted {
  done: number;
  total: number;
  unit: string;
  phase: string;
}

export function RunProgress({ run }: { run: Run }) {
  const progress = run.progress as Counted | null;
  // An evaluation waits for its parts, and shows how many of them are done.
  if (!["running", "pending"].includes(run.state) || !progress?.total) return null;
  const share = Math.min(100, (100 * progress.done) / progress.total);
  const left = run.seconds_left === null ? "" : `, about ${seconds(run.seconds_left)} left`;
  const text = `${progress.phase}: ${count(progress.done)} of ${count(progress.total)} ${progress.unit}${left}`;
  return (
    <div style={{ minWidth: 110 }}>
      <Progress mt={6} mb={2} value={share} aria-label={`${run.name}, ${text}`} />
      <Text size="xs" c="dimmed">
        {text}
      </Text>
    </div>
  );
}
