import { Progress, Text } from "@mantine/core";
import { count } from "./format";
import type { Run } from "../api/runs";

interface Counted {
  done: number;
  total: number;
  unit: string;
  phase: string;
}

export function RunProgress({ run }: { run: Run }) {
  const progress = run.progress as Counted | null;
  if (run.state !== "running" || !progress?.total) return null;
  const share = Math.min(100, (100 * progress.done) / progress.total);
  const text = `${progress.phase}: ${count(progress.done)} of ${count(progress.total)} ${progress.unit}`;
  return (
    <div style={{ minWidth: 110 }}>
      <Progress mt={6} mb={2} value={share} aria-label={`${run.name}, ${text}`} />
      <Text size="xs" c="dimmed">
        {text}
      </Text>
    </div>
  );
}
