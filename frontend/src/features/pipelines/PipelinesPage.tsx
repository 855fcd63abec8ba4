import { getRouteApi } from "@tanstack/react-router";
import { listPipelines } from "../../api/runs/pipelines";
import { useMay } from "../../api/accounts/session";
import { Empty } from "../../shared/Feedback";
import { LinkButton } from "../../shared/links";
import { MarkedList } from "../../shared/marks/MarkedList";
import { Page } from "../../shared/Page";
import { PipelinesTable } from "../../shared/tables/PipelinesTable";

const route = getRouteApi("/p/$project/pipelines");

export function PipelinesPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayRun = useMay(project, "run");
  const launch = mayRun && (
    <LinkButton component="a" to="/p/$project/launch" params={{ project }} search={{}}>
      Launch a recipe
    </LinkButton>
  );
  return (
    <Page title="Pipelines" actions={launch}>
      <MarkedList
        project={project}
        type="pipeline"
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
        load={(asked) => listPipelines(project, asked)}
        none={
          <Empty title="No pipelines yet">
            A pipeline is one execution of a recipe, from data to a report.
          </Empty>
        }
      >
        {(items) => <PipelinesTable project={project} items={items} />}
      </MarkedList>
    </Page>
  );
}
