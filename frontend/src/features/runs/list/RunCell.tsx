import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { RunRow } from "../../../api/runs/runs";
import { seconds, short } from "../../../shared/format/format";
import { runName } from "../../../shared/format/runName";
import { timeTaken } from "../../../shared/format/runTime";
import { Link, useProject } from "../../../shared/links";
import { Star } from "../../../shared/marks/Star";
import { Tags } from "../../../shared/marks/Tags";
import { RunProgress } from "../../../shared/Progress";
import { RunBadge } from "../../../shared/StateBadge";
import { timeCell } from "../../../shared/tables/RunTimes";
import { WithCode } from "../../../shared/text/WithCode";
import { When } from "../../../shared/When";

/** What a run shows in one of the columns behind its name. */
export function RunCell({ run, column, now }: { run: RunRow; column: string; now: number }) {
  switch (column) {
    case "state":
      return (
        <>
          <RunBadge run={run} />
          {run.marks.archived_at && (
            <Text size="xs" c="dimmed">
              archived
            </Text>
          )}
          <RunProgress run={run} />
        </>
      );
    case "key_metric":
      return run.key_metric ? (
        <>
          <Text span size="xs" c="dimmed">
            {run.key_metric.name}
          </Text>{" "}
          {short(run.key_metric.value)}
        </>
      ) : (
        "–"
      );
    case "kind":
    case "duration":
    case "device_seconds":
    case "created":
      return timeCell(column, run, now);
    default:
      return shown(run.values[column]);
  }
}

/** Its name with its tags and notes, why it failed, and on a phone what the columns have no place for. */
export function NameOfRun({ run, now }: { run: RunRow; now: number }) {
  const project = useProject();
  return (
    <>
      <Group gap={4} wrap="nowrap" align="flex-start">
        <Star project={project} type="run" item={run.id} name={runName(run)} on={run.marks.favourite} />
        <Link
          to="/p/$project/runs/$run"
          params={{ project, run: run.id }}
          size="sm"
          fw={550}
          lineClamp={2}
          title={runName(run)}
          style={{ overflowWrap: "anywhere", whiteSpace: "normal" }}
        >
          {run.pipeline && (
            <>
              {run.pipeline.name}.<wbr />
            </>
          )}
          {run.name}
        </Link>
      </Group>
      <Tags tags={run.marks.tags} />
      {run.marks.notes && (
        <Text size="xs" c="dimmed" lineClamp={1} title="Notes">
          {run.marks.notes}
        </Text>
      )}
      <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
        {run.method ?? run.kind}
        {run.started_at && `, ${seconds(timeTaken(run, now))}`}, <When at={run.created_at} />
        {run.key_metric && (
          <div>
            {run.key_metric.name} {short(run.key_metric.value)}
          </div>
        )}
      </Text>
      {run.state === "failed" && (
        <Text size="xs" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
          {run.reason_code && <b>{run.reason_code}: </b>}
          <WithCode text={run.reason} />
        </Text>
      )}
    </>
  );
}

function shown(value: number | string | null | undefined): ReactNode {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? short(value) : value;
}
