import { Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { modelEvaluationsQuery } from "../../api/models/models";
import { DataTable, type Column } from "../../shared/tables/DataTable";
import { count, percent, signed, counted } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { shown } from "../../shared/forms/condition";
import { intervalOf } from "../../shared/report/intervalOf";
import { winsVs } from "../../shared/report/winsVs";
import { When } from "../../shared/When";

interface Properties {
  project: string;
  model: string;
  /** Evaluations in which it answers or scores. */
  entered: Schemas["NamedRef"][];
}

/** What evaluations found of this model, in every pipeline that had it. */
export function Evaluations({ project, model, entered }: Properties) {
  const query = useQuery(modelEvaluationsQuery(project, model));
  if (!query.data?.length) {
    if (!entered.length) return null;
    return (
      <section>
        <Title order={2} size="h4" mb="sm">
          Evaluations
        </Title>
        <Entered project={project} entered={entered} />
      </section>
    );
  }
  const rows = query.data.flatMap((one) => one.rows.map((row) => ({ one, row })));
  const columns: Column<(typeof rows)[number]>[] = [
    {
      title: "Evaluation",
      cell: ({ one }) =>
        one.pipeline ? (
          <Link
            size="sm"
            to="/p/$project/pipelines/$pipeline"
            params={{ project, pipeline: one.pipeline.id }}
          >
            {one.pipeline.name}
          </Link>
        ) : (
          <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: one.run_id }}>
            its run
          </Link>
        ),
    },
    {
      title: "Requested",
      right: true,
      cell: ({ row }) => (row.score === null ? "–" : shown(row.score)),
    },
    { title: "Reward (z)", right: true, cell: ({ row }) => signed(row.reward_mean) },
    {
      title: "95% interval",
      right: true,
      wide: true,
      cell: ({ row }) => intervalOf(row),
    },
    {
      title: winsVs(query.data.map((one) => one.baseline)),
      right: true,
      cell: ({ row }) => percent(row.win_rate_vs_baseline),
    },
    { title: "Length (tokens)", right: true, wide: true, cell: ({ row }) => row.length_mean.toFixed(1) },
    { title: "Prompts", right: true, wide: true, cell: ({ row }) => count(row.n) },
    { title: "When", wide: true, cell: ({ one }) => <When at={one.created_at} /> },
  ];
  return (
    <section>
      <Title order={2} size="h4" mb="sm">
        Evaluations
      </Title>
      <Entered project={project} entered={entered} />
      <DataTable
        label="Evaluations of the model, the newest first"
        rows={rows}
        columns={columns}
        keyOf={({ one, row }) => `${one.run_id} ${row.score}`}
        below={({ one, row }) => (
          <>
            {counted(row.n, "prompt")}, <When at={one.created_at} />
          </>
        )}
      />
      <Text size="xs" c="dimmed">
        Rewards are in z units of each pipeline&apos;s own labels.
      </Text>
    </section>
  );
}

function Entered({ project, entered }: Omit<Properties, "model">) {
  if (!entered.length) return null;
  return (
    <Text size="sm" mb="sm">
      It answers or scores in{" "}
      {entered.map((one, at) => (
        <span key={one.id}>
          {at > 0 && ", "}
          <Link
            size="sm"
            underline="always"
            to="/p/$project/evaluations/$evaluation"
            params={{ project, evaluation: one.name }}
            search={{}}
          >
            {one.name}
          </Link>
        </span>
      ))}
      .
    </Text>
  );
}
