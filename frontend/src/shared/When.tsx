import { Tooltip } from "@mantine/core";
import { ago } from "./format/format";
import { useNow } from "./format/clock";

/** A moment: how long ago, and on hover the time in the reader's zone. */
export function When({ at }: { at: string | null }) {
  const now = useNow();
  if (!at) return <>–</>;
  const whole = new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  return (
    <Tooltip label={whole}>
      <time dateTime={at} style={{ whiteSpace: "nowrap" }}>
        {ago(at, now)}
      </time>
    </Tooltip>
  );
}
