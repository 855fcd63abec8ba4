import { Title } from "@mantine/core";
import type { RunDetail } from "../../api/runs/runs";
import { Costs } from "../../shared/costs/Costs";
import { runName } from "../../shared/format/runName";

const UNTIL_IT_ENDS = "the current attempt counts its phases so far, and its idle time when it ends";

/** Where the device time went. Nothing before the first word of the stage. */
export function RunCosts({ run }: { run: RunDetail }) {
  if (!run.ledger.phases.length && !run.ledger.failed_attempts) return null;
  const goesOn = run.attempts.some((attempt) => !attempt.ended_at);
  return (
    <section>
      <Title order={2} size="h6" mb={4}>
        Cost
      </Title>
      <Costs
        costs={[{ label: runName(run), ledger: run.ledger, about: goesOn ? UNTIL_IT_ENDS : undefined }]}
        label={`Cost of ${runName(run)} by phase`}
      />
    </section>
  );
}
