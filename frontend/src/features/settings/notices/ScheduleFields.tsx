import { Group, Select, Stack, Switch, TextInput } from "@mantine/core";
import type { Schedule } from "../../../api/accounts/notices";
import { clockTime, timeZones } from "./schedule";

const DIGESTS = [
  { value: "each", label: "A message for each event" },
  { value: "hourly", label: "One message an hour" },
  { value: "daily", label: "One message a day" },
];

/** When people are written to: at once or in digests, and never in quiet hours. */
export function ScheduleFields({
  value,
  onChange,
}: {
  value: Schedule;
  onChange: (schedule: Schedule) => void;
}) {
  const quiet = value.quiet_from !== null;
  const timed = quiet || value.digest === "daily";
  return (
    <Stack gap="sm">
      <Select
        label="Send"
        data={DIGESTS}
        allowDeselect={false}
        value={value.digest}
        onChange={(digest) => onChange({ ...value, digest: digest as Schedule["digest"] })}
      />
      {value.digest === "daily" && (
        <TextInput
          label="At"
          type="time"
          required
          maw={160}
          value={clockTime(value.digest_at)}
          onChange={(event) => onChange({ ...value, digest_at: event.currentTarget.value })}
        />
      )}
      <Switch
        label="Quiet hours"
        description="Notices from these hours are sent when they end."
        checked={quiet}
        onChange={(event) =>
          onChange({
            ...value,
            quiet_from: event.currentTarget.checked ? "22:00" : null,
            quiet_until: event.currentTarget.checked ? "07:00" : null,
          })
        }
      />
      {quiet && (
        <Group>
          <TextInput
            label="From"
            type="time"
            required
            value={clockTime(value.quiet_from ?? "")}
            onChange={(event) => onChange({ ...value, quiet_from: event.currentTarget.value })}
          />
          <TextInput
            label="To"
            type="time"
            required
            value={clockTime(value.quiet_until ?? "")}
            onChange={(event) => onChange({ ...value, quiet_until: event.currentTarget.value })}
          />
        </Group>
      )}
      {timed && (
        <Select
          label="Time zone"
          searchable
          allowDeselect={false}
          data={timeZones(value.time_zone)}
          value={value.time_zone}
          onChange={(zone) => zone && onChange({ ...value, time_zone: zone })}
        />
      )}
    </Stack>
  );
}
