import { Text } from "@mantine/core";
import type { Entrant } from "../../../api/evaluation/evaluations";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { StateBadge } from "../../../shared/StateBadge";
import { WithCode } from "../../../shared/text/WithCode";
import { bestOf } from "../../../shared/report/bestOf";
import { shown } from "../../../shared/forms/condition";
import { Share } from "../parts";

/** Every entrant with how far its answers are. */
export function EntrantsTable({ project, entrants }: { project: string; entrants: Entrant[] }) {
  const columns: Column<Entrant>[] = [
    {
      title: "Entrant",
      cell: (one) => (
        <>
          <Text size="sm" fw={550} style={{ overflowWrap: "anywhere" }}>
            {one.name}
          </Text>
          <Text size="xs" c="dimmed" component="div">
            <From project={project} entrant={one} />
          </Text>
        </>
      ),
    },
    { title: "Requested", right: true, wide: true, cell: (one) => shown(one.score) },
    { title: "Decoding", wide: true, cell: (one) => decodingOf(one) },
    { title: "Answers", cell: (one) => <Answers project={project} entrant={one} /> },
  ];
  return (
    <DataTable
      label="Entrants"
      rows={entrants}
      columns={columns}
      keyOf={(one) => one.id}
      below={(one) =>
        one.score === null ? decodingOf(one) : `asked for ${shown(one.score)}, ${decodingOf(one)}`
      }
    />
  );
}

function From({ project, entrant }: { project: string; entrant: Entrant }) {
  if (entrant.source === "model" && entrant.model) {
    return (
      <Link
        size="xs"
        underline="always"
        to="/p/$project/models/$model"
        params={{ project, model: entrant.model }}
      >
        {entrant.model}
      </Link>
    );
  }
  if (entrant.source === "endpoint") return <>endpoint {entrant.endpoint ?? "that was removed"}</>;
  const { file, dataset } = (entrant.imported ?? {}) as { file?: string; dataset?: string };
  if (dataset) {
    return (
      <Link
        size="xs"
        underline="always"
        to="/p/$project/datasets/$dataset"
        params={{ project, dataset }}
        search={{}}
      >
        {dataset}
      </Link>
    );
  }
  return <>{entrant.source === "import" ? `from ${file ?? "a file"}` : "a model that was removed"}</>;
}

function decodingOf({ source, decoding, samples }: Entrant): string {
  if (source === "import") return "made elsewhere";
  const {
    temperature,
    temperatures,
    max_new_tokens: longest,
    best_of: best,
  } = decoding as {
    temperature?: number;
    temperatures?: Record<string, number>;
    max_new_tokens?: number | null;
    best_of?: { n: number; reward: string };
  };
  const how = temperatures ? "by category" : temperature ? `sampled, temperature ${temperature}` : "greedy";
  const parts = [
    bestOf({ best_of: best?.n, chosen_by: best?.reward }),
    how,
    longest ? `at most ${counted(longest, "token")}` : "",
    samples > 1 ? `${samples} answers each` : "",
  ];
  return parts.filter(Boolean).join(", ");
}

function Answers({ project, entrant }: { project: string; entrant: Entrant }) {
  const { run, responses, missing } = entrant;
  const live = run && ["pending", "queued", "running"].includes(run.state);
  const progress = run?.progress as { done?: number; total?: number; unit?: string } | null | undefined;
  return (
    <>
      {live && run.state === "running" && progress?.total ? (
        <Share
          of={entrant.name}
          done={progress.done ?? 0}
          total={progress.total}
          unit={progress.unit ?? "answers"}
        />
      ) : (
        <Share of={entrant.name} done={responses} total={responses + missing} unit="answers" />
      )}
      {run && run.state !== "succeeded" && (
        <Text size="xs" component="div" style={{ overflowWrap: "anywhere" }}>
          <StateBadge state={run.state} />{" "}
          <Link size="xs" underline="always" to="/p/$project/runs/$run" params={{ project, run: run.id }}>
            its run
          </Link>
          {run.reason && (
            <>
              : <WithCode text={run.reason} />
            </>
          )}
        </Text>
      )}
    </>
  );
}
