import { Badge, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { type EvaluationSummary, listEvaluations } from "../../api/evaluation/evaluations";
import { useMay } from "../../api/accounts/session";
import { DataTable, type Column } from "../../shared/tables/DataTable";
import { Empty } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { MarkedList } from "../../shared/marks/MarkedList";
import { NameCell } from "../../shared/marks/NameCell";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { EvaluationState } from "./EvaluationState";

const route = getRouteApi("/p/$project/evaluations");
const SHOWN_ENTRANTS = 4;

export function EvaluationsPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayRun = useMay(project, "run");
  const begin = mayRun && (
    <LinkButton component="a" to="/p/$project/evaluations/new" params={{ project }} search={{}}>
      New evaluation
    </LinkButton>
  );
  return (
    <Page title="Evaluations" actions={begin}>
      <MarkedList
        project={project}
        type="evaluation"
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
        load={(asked) => listEvaluations(project, asked)}
        none={
          <Empty title="No evaluations yet">
            An evaluation lets several entrants (models, each with its decoding and its requested score)
            answer the same prompts. People rank the answers blind, judges and reward models assess them, and
            one report shows who is better, and whether that is more than chance.
            {!mayRun && <div>Your role is read-only; starting one needs the role engineer or owner.</div>}
          </Empty>
        }
      >
        {(items) => (
          <DataTable
            label="Evaluations, the newest first"
            rows={items}
            columns={columnsOf(project)}
            keyOf={(one) => one.id}
            below={(one) => (
              <>
                {named(one.entrants)}; <When at={one.created_at} />
              </>
            )}
          />
        )}
      </MarkedList>
    </Page>
  );
}

function columnsOf(project: string): Column<EvaluationSummary>[] {
  return [
    {
      title: "Evaluation",
      cell: (one) => (
        <NameCell item={one.id} name={one.name}>
          <Link
            to="/p/$project/evaluations/$evaluation"
            params={{ project, evaluation: one.name }}
            search={{}}
            fw={550}
            size="sm"
            style={{ overflowWrap: "anywhere" }}
          >
            {one.name}
          </Link>
        </NameCell>
      ),
    },
    { title: "State", cell: (one) => <EvaluationState state={one.state} /> },
    { title: "Prompts", right: true, cell: (one) => count(one.prompts) },
    {
      title: "Entrants",
      wide: true,
      cell: (one) =>
        one.entrants.length ? (
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {named(one.entrants)}
          </Text>
        ) : (
          <Badge color="gray">none yet</Badge>
        ),
    },
    { title: "Judges", right: true, wide: true, cell: (one) => count(one.judges) },
    { title: "Campaigns", right: true, wide: true, cell: (one) => count(one.campaigns) },
    { title: "Created", wide: true, cell: (one) => <When at={one.created_at} /> },
  ];
}

function named(entrants: string[]): string {
  const more = entrants.length - SHOWN_ENTRANTS;
  const names = entrants.slice(0, SHOWN_ENTRANTS).join(", ");
  return more > 0 ? `${names} and ${count(more)} more` : names || "no entrants";
}
