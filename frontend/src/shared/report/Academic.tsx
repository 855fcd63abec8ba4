import { Text } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { count, percent, points, signed, counted } from "../format/format";
import { Link, useProject } from "../links";
import { type Column, DataTable } from "../tables/DataTable";
import { When } from "../When";

type Task = Schemas["AcademicTask"];
type TaskFigure = Schemas["AcademicFigure"];
type Difference = Schemas["AcademicDifference"];
type Mismatch = Schemas["AcademicMismatch"];
type Row = Schemas["AcademicRow"];

interface Line {
  task: Task;
  figure: TaskFigure;
  of?: Row;
  /** The first of its task. */
  first: boolean;
}

const UNLIKE: Record<Mismatch["unlike"][number], string> = {
  harness: "another version of lm-evaluation-harness",
  version: "another version of the task",
  shots: "another number of shots",
  template: "a chat template on one side only",
  items: "other items or right answers",
  prompts: "other prompts or generation options",
  scoring: "other filters or metrics",
};

/** All of one run: every figure of its tasks. */
export function AcademicBody({ result }: { result: Schemas["AcademicResult"] }) {
  const lines = result.tasks.flatMap((task) =>
    task.figures.map((figure, at) => ({ task, figure, first: at === 0 })),
  );
  return (
    <div>
      <DataTable
        label="Figures of the tasks"
        rows={lines}
        columns={columnsOf(lines)}
        keyOf={keyOf}
        below={({ figure }) => figure.name}
      />
      <Text size="xs" c="dimmed">
        By lm-evaluation-harness {result.harness}: value ± standard error, and the 95% interval over items.
      </Text>
    </div>
  );
}

/** The newest result of each task, with what it gained over the models that this one comes from. */
export function AcademicTable({ rows, label }: { rows: Row[]; label: string }) {
  const lines = rows.flatMap((row) =>
    row.task.figures.map((figure, at) => ({ task: row.task, figure, of: row, first: at === 0 })),
  );
  return (
    <DataTable
      label={label}
      rows={lines}
      columns={columnsOf(lines)}
      keyOf={keyOf}
      below={({ figure }) => figure.name}
    />
  );
}

function keyOf({ task, figure }: Line): string {
  return `${task.task}.${figure.name}`;
}

function columnsOf(lines: Line[]): Column<Line>[] {
  const found = lines.flatMap(({ of }) => [...(of?.differences ?? []), ...(of?.not_compared ?? [])]);
  const compared = [...new Set(found.map((one) => one.vs))].sort();
  return [
    { title: "Task", cell: (line) => line.first && <TaskCell task={line.task} of={line.of} /> },
    { title: "Figure", wide: true, cell: ({ figure }) => figure.name },
    { title: "Value", right: true, cell: ({ figure }) => <Value of={figure} /> },
    ...compared.map((vs) => ({
      title: `Difference from ${vs}`,
      right: true,
      cell: ({ of, figure }: Line) => (
        <Gain
          of={of?.differences?.find((one) => one.vs === vs && one.figure === figure.name)}
          unlike={of?.not_compared?.find((one) => one.vs === vs)}
          share={isShare(figure)}
        />
      ),
    })),
    ...(lines.some(({ of }) => of)
      ? [
          {
            title: "When",
            wide: true,
            cell: ({ of, first }: Line) => first && of && <When at={of.ended_at} />,
          },
        ]
      : []),
  ];
}

function TaskCell({ task, of }: { task: Task; of?: Row }) {
  const project = useProject();
  const facts = [
    ...(task.shots == null ? [] : [counted(task.shots, "shot")]),
    task.items < task.of
      ? `${count(task.items)} of ${counted(task.of, "item")}`
      : counted(task.items, "item"),
    ...(task.parts ? [counted(task.parts, "part")] : []),
    ...(task.version == null ? [] : [`version ${task.version}`]),
    ...(task.template ? ["chat template"] : []),
  ];
  return (
    <>
      {of ? (
        <Link
          size="sm"
          to="/p/$project/runs/$run"
          params={{ project, run: of.run_id }}
          style={{ overflowWrap: "anywhere" }}
        >
          {task.task}
        </Link>
      ) : (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {task.task}
        </Text>
      )}
      <Text size="xs" c="dimmed">
        {facts.join(", ")}
      </Text>
    </>
  );
}

/** Whether it is shown as a share: a mean of scores from 0 to 1. */
function isShare({ interval, value }: TaskFigure): boolean {
  return !!interval && value >= 0 && value <= 1;
}

function Value({ of }: { of: TaskFigure }) {
  const format = (value: number) => (isShare(of) ? percent(value) : signed(value, 3));
  const { low, high } = of.interval ?? {};
  return (
    <Text span size="sm">
      <span style={{ whiteSpace: "nowrap" }}>
        {format(of.value)}
        {of.stderr != null && ` ± ${format(of.stderr)}`}
      </span>
      {low != null && high != null && (
        <Text size="xs" c="dimmed" component="div">
          [{format(low)}, {format(high)}]
        </Text>
      )}
    </Text>
  );
}

function Gain({ of, unlike, share }: { of?: Difference; unlike?: Mismatch; share: boolean }) {
  if (!of && unlike)
    return (
      <Text size="xs" c="dimmed">
        {unlike.model} has {unlike.unlike.map((one) => UNLIKE[one]).join(", ")}
      </Text>
    );
  if (!of) return "–";
  const { value, low, high } = of.difference;
  const gain = (one: number) => (share ? points(one) : `${one > 0 ? "+" : ""}${signed(one, 3)}`);
  return (
    <Text span size="sm" title={`${of.model} has ${share ? percent(of.theirs) : signed(of.theirs, 3)}`}>
      <span style={{ whiteSpace: "nowrap" }}>{value == null ? "–" : gain(value)}</span>
      {low != null && high != null && (
        <Text size="xs" c="dimmed" component="div">
          [{gain(low)}, {gain(high)}]
        </Text>
      )}
    </Text>
  );
}

export const DIFFERENCES =
  "Differences of shares are in points of 100. All are on the same items asked and scored in the same way, with the 95% interval of the paired difference.";
