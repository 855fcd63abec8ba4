import { Box } from "@mantine/core";
import { seconds } from "../format/format";
import { COLOURS, inWords, type Ledger } from "./phases";
import classes from "./PhaseBar.module.css";

/** Device time by phase; what failed attempts took is apart, at its end. `longest`: device-seconds of a whole width. */
export function PhaseBar({
  label,
  ledger,
  longest,
  height = 18,
}: {
  label: string;
  ledger: Ledger;
  longest?: number;
  height?: number;
}) {
  const whole = longest || ledger.device_seconds + ledger.failed_device_seconds || 1;
  const share = (value: number) => `${(100 * value) / whole}%`;
  return (
    <Box role="img" aria-label={`${label}: ${inWords(ledger)}`} className={classes.bar} style={{ height }}>
      {ledger.phases.map((one) => (
        <div
          key={one.phase}
          className={classes.phase}
          title={`${one.phase}: ${seconds(one.device_seconds)}`}
          style={{ width: share(one.device_seconds), background: COLOURS[one.phase] }}
        />
      ))}
      {ledger.failed_device_seconds > 0 && (
        <div
          className={classes.failed}
          title={`did not succeed: ${seconds(ledger.failed_device_seconds)}`}
          style={{ width: share(ledger.failed_device_seconds) }}
        />
      )}
    </Box>
  );
}
