import { Text } from "@mantine/core";
import type { Schedule } from "../../../api/accounts/notices";
import { clockTime } from "./schedule";

/** When a rule sends, in one line; nothing where it sends each event at once. */
export function ScheduleText({ schedule }: { schedule: Schedule }) {
  const parts = [];
  if (schedule.digest === "hourly") parts.push("One message an hour");
  if (schedule.digest === "daily") parts.push(`One message a day at ${clockTime(schedule.digest_at)}`);
  if (schedule.quiet_from && schedule.quiet_until)
    parts.push(
      `${parts.length ? "quiet" : "Quiet"} from ${clockTime(schedule.quiet_from)} to ${clockTime(schedule.quiet_until)}`,
    );
  if (!parts.length) return null;
  return (
    <Text size="sm" c="dimmed">
      {parts.join(", ")} ({schedule.time_zone})
    </Text>
  );
}
