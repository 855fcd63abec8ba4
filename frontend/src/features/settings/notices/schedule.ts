import type { Schedule } from "../../../api/accounts/notices";

/** `22:00:00` as `22:00`. */
export const clockTime = (time: string) => time.slice(0, 5);

/** What the form starts with: each event at once, in the browser's time zone. */
export const newSchedule = (): Schedule => ({
  digest: "each",
  digest_at: "09:00",
  quiet_from: null,
  quiet_until: null,
  time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
});

/** All names that the browser knows, with the one that is set. */
export const timeZones = (set: string) => [
  ...new Set(["UTC", set, ...Intl.supportedValuesOf("timeZone")].filter(Boolean)),
];
