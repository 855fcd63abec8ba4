import { Text } from "@mantine/core";
import { count, percent } from "../../../shared/format/format";

interface ShareProperties {
  of: number | null;
  low: number | null;
  high: number | null;
  n: number;
}

/** A share with its 95% interval, and over how many it is. */
export function Share({ of, low, high, n }: ShareProperties) {
  if (of === null) return "–";
  return (
    <>
      {percent(of, 0)}{" "}
      <Text span size="xs" c="dimmed">
        {low !== null && high !== null && `[${percent(low, 0)}, ${percent(high, 0)}] `}of {count(n)}
      </Text>
    </>
  );
}
