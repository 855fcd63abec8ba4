import { Checkbox, Group, Table, Text, UnstyledButton } from "@mantine/core";
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { RunRow } from "../../../api/runs/runs";
import { useNow } from "../../../shared/format/clock";
import { seconds, short } from "../../../shared/format/format";
import { runName } from "../../../shared/format/runName";
import { timeTaken } from "../../../shared/format/runTime";
import { Link, useProject } from "../../../shared/links";
import { Star } from "../../../shared/marks/Star";
import { Tags } from "../../../shared/marks/Tags";
import { RunProgress } from "../../../shared/Progress";
import { StateBadge } from "../../../shared/StateBadge";
import { WithCode } from "../../../shared/text/WithCode";
import { When } from "../../../shared/When";
import { RunTimes } from "../../../shared/tables/RunTimes";

interface Properties {
  runs: RunRow[];
  columns: string[];
  sort: string;
  onSort: (sort: string) => void;
  chosen: ReadonlySet<string>;
  onChoose: (runs: string[], chosen: boolean) => void;
}

/** Columns with which the table fits a wide window, so that its head can stay in sight. */
const FEW = 3;

/** The list of runs with the columns that were chosen; every heading sorts on the server. */
export function RunRows({ runs, columns, sort, onSort, chosen, onChoose }: Properties) {
  const project = useProject();
  const now = useNow();
  const all = runs.every((run) => chosen.has(run.id));
  const head = (title: string, field: string, more: { wide?: boolean; right?: boolean } = {}) => (
    <Heading title={title} field={field} sort={sort} onSort={onSort} {...more} />
  );
  return (
    <Table.ScrollContainer
      minWidth={340 + 110 * columns.length}
      type="native"
      className={columns.length <= FEW ? "sticky-head" : undefined}
    >
      <Table aria-label={sort === "-created" ? "Runs, the newest first" : "Runs"} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={36}>
              <Checkbox
                aria-label="Select all that are shown"
                checked={all}
                indeterminate={!all && runs.some((run) => chosen.has(run.id))}
                onChange={(event) =>
                  onChoose(
                    runs.map((run) => run.id),
                    event.currentTarget.checked,
                  )
                }
              />
            </Table.Th>
            {head("Run", "name")}
            {head("State", "state")}
            {columns.map((name) => (
              <Heading key={name} title={name} field={name} sort={sort} onSort={onSort} right />
            ))}
            {head("Kind", "kind", { wide: true })}
            {head("Duration", "duration", { wide: true })}
            {head("Device time", "device_seconds", { wide: true })}
            {head("Created", "created", { wide: true })}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.id} data-run={run.name} data-selected={chosen.has(run.id) || undefined}>
              <Table.Td>
                <Checkbox
                  aria-label={`Select ${runName(run)}`}
                  checked={chosen.has(run.id)}
                  onChange={(event) => onChoose([run.id], event.currentTarget.checked)}
                />
              </Table.Td>
              <Table.Td className="run-name">
                <Group gap={4} wrap="nowrap" align="flex-start">
                  <Star
                    project={project}
                    type="run"
                    item={run.id}
                    name={runName(run)}
                    on={run.marks.favourite}
                  />
                  <Link
                    to="/p/$project/runs/$run"
                    params={{ project, run: run.id }}
                    size="sm"
                    fw={550}
                    truncate
                    title={runName(run)}
                  >
                    {runName(run)}
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
                </Text>
                {run.state === "failed" && (
                  <Text size="xs" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
                    {run.reason_code && <b>{run.reason_code}: </b>}
                    <WithCode text={run.reason} />
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <StateBadge state={run.state} warnings={run.warnings} />
                {run.marks.archived_at && (
                  <Text size="xs" c="dimmed">
                    archived
                  </Text>
                )}
                <RunProgress run={run} />
              </Table.Td>
              {columns.map((name) => (
                <Table.Td key={name} ta="right" data-column={name}>
                  {shown(run.values[name])}
                </Table.Td>
              ))}
              <RunTimes run={run} now={now} />
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function shown(value: number | string | null | undefined): ReactNode {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? short(value) : value;
}

interface HeadingProperties {
  title: string;
  field: string;
  sort: string;
  onSort: (sort: string) => void;
  wide?: boolean;
  right?: boolean;
}

/** Sorts by its field: the highest first, then the lowest, then the newest again. */
function Heading({ title, field, sort, onSort, wide, right }: HeadingProperties) {
  const down = sort === `-${field}`;
  const up = sort === field;
  const after =
    field === "created" ? (down ? field : `-${field}`) : down ? field : up ? "-created" : `-${field}`;
  return (
    <Table.Th
      ta={right ? "right" : undefined}
      style={{ whiteSpace: "nowrap" }}
      visibleFrom={wide ? "sm" : undefined}
      aria-sort={down ? "descending" : up ? "ascending" : undefined}
    >
      <UnstyledButton className="sort-button" fz="sm" onClick={() => onSort(after)}>
        {title}
        {down && <IconArrowDown size={14} aria-hidden style={{ verticalAlign: "-2px" }} />}
        {up && <IconArrowUp size={14} aria-hidden style={{ verticalAlign: "-2px" }} />}
      </UnstyledButton>
    </Table.Th>
  );
}
