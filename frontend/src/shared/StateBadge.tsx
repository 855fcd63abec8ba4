import { Badge, Loader } from "@mantine/core";
import {
  IconAlertTriangle,
  IconBan,
  IconCheck,
  IconClock,
  IconHourglass,
  IconPlayerPause,
  IconPlayerSkipForward,
  IconX,
} from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";

const LOOK: Record<string, { color: string; icon: ReactNode }> = {
  pending: { color: "gray", icon: <IconHourglass size={12} /> },
  queued: { color: "indigo", icon: <IconClock size={12} /> },
  running: { color: "blue", icon: <Loader size={10} color="currentColor" /> },
  succeeded: { color: "green", icon: <IconCheck size={12} /> },
  failed: { color: "red", icon: <IconX size={12} /> },
  cancelled: { color: "gray", icon: <IconBan size={12} /> },
  paused: { color: "yellow", icon: <IconPlayerPause size={12} /> },
  skipped: { color: "gray", icon: <IconPlayerSkipForward size={12} /> },
};

/** A run that works though something is wrong with it is not green. */
function warned(warnings: Schemas["RunWarning"][]) {
  const serious = warnings.some((one) => one.level === "serious");
  return { color: serious ? "red" : "orange", icon: <IconAlertTriangle size={12} /> };
}

export function StateBadge({
  state,
  label,
  warnings = [],
}: {
  state: string;
  label?: string;
  warnings?: Schemas["RunWarning"][];
}) {
  const look =
    state === "succeeded" && warnings.length > 0 ? warned(warnings) : (LOOK[state] ?? LOOK.pending!);
  return (
    <Badge color={look.color} leftSection={look.icon} className="state-badge">
      {label ?? state}
    </Badge>
  );
}

type Shown = Pick<Schemas["RunSummary"], "kind" | "state" | "started_at" | "warnings">;

/** The state of a run. No worker ever has an evaluation's run: it waits for its answers and rewards, which is its work. */
export function RunBadge({ run }: { run: Shown }) {
  const atWork = run.kind === "evaluate" && run.state === "pending" && run.started_at !== null;
  return <StateBadge state={atWork ? "running" : run.state} warnings={run.warnings} />;
}
