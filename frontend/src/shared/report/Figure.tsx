import { Text, Tooltip } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { count } from "../format/format";

export type Estimate = Schemas["Estimate"];
export type Report = Schemas["EvaluationReport"];

export const plain = (digits: number) => (value: number) => value.toFixed(digits).replace("-", "−");
export const asPercent = (value: number) => `${(100 * value).toFixed(1)}%`;
export const whole = (value: number) => count(Math.round(value));

/** p as it is reported: never 0. */
export function pValue(p: number | null | undefined): string {
  if (p === null || p === undefined) return "–";
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

const WHOLE = { whiteSpace: "nowrap" } as const;

/** A figure with its 95% interval and its n. */
export function Figure({
  of,
  format = plain(2),
  stacked = true,
}: {
  of: Estimate | null | undefined;
  format?: (value: number) => string;
  /** The interval below the figure. */
  stacked?: boolean;
}) {
  if (!of || of.value === null) {
    return (
      <Text span size="sm" c="dimmed">
        {of ? `– (n = ${count(of.n)})` : "–"}
      </Text>
    );
  }
  const known = of.low !== null && of.low !== undefined && of.high !== null && of.high !== undefined;
  return (
    <Tooltip label={`95% interval, n = ${count(of.n)}`} openDelay={400}>
      <Text span size="sm" style={{ display: "inline-block", ...(stacked ? WHOLE : {}) }}>
        {format(of.value)}
        {stacked ? <br /> : " "}
        <Text span size="xs" c="dimmed">
          {/* A narrow column breaks the line between the two, and never within them. */}
          {known && <span style={WHOLE}>{`[${format(of.low!)}, ${format(of.high!)}]`}</span>}
          {known && " "}
          <span style={WHOLE}>n = {count(of.n)}</span>
        </Text>
      </Text>
    </Tooltip>
  );
}
