import { Alert, List, Text } from "@mantine/core";
import { IconHeartbeat } from "@tabler/icons-react";
import type { RunDetail } from "../../api/runs/runs";
import { count } from "../../shared/format/format";
import { WithCode } from "../../shared/text/WithCode";

const SHOWN = 5;

/** What a rule does to its run when it holds. */
export const DONE: Record<RunDetail["findings"][number]["action"], string> = {
  note: "",
  pause: "the rule pauses the run",
  stop: "the rule stops the run",
};

/** What the health rules of a run found, the newest first. */
export function Findings({ run }: { run: RunDetail }) {
  if (run.findings.length === 0) return null;
  const newest = run.findings.toReversed().slice(0, SHOWN);
  return (
    <Alert color="orange" variant="light" icon={<IconHeartbeat />} title="Health findings">
      <List size="sm">
        {newest.map((finding) => (
          <List.Item key={`${finding.step}/${finding.rule}`}>
            Step {count(finding.step)}: <WithCode text={finding.reason} />
            {DONE[finding.action] && `; ${DONE[finding.action]}`}
          </List.Item>
        ))}
      </List>
      {run.findings.length > SHOWN && (
        <Text size="xs" c="dimmed" mt="xs">
          The timeline has all {count(run.findings.length)}.
        </Text>
      )}
    </Alert>
  );
}
