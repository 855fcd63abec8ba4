import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { pipelinesQuery } from "../../api/runs/pipelines";
import { useMay } from "../../api/accounts/session";
import { Empty, Loaded } from "../../shared/Feedback";
import { Page } from "../../shared/Page";
import { PipelinesTable } from "../../shared/tables/PipelinesTable";
import { LinkButton } from "../../shared/links";

export function PipelinesPage() {
  const { project } = getRouteApi("/p/$project/pipelines").useParams();
  const query = useQuery(pipelinesQuery(project));
  const mayRun = useMay(project, "run");
  const launch = mayRun && (
    <LinkButton component="a" to="/p/$project/launch" params={{ project }} search={{}}>
      Launch a recipe
    </LinkButton>
  );
  return (
    <Page title="Pipelines" actions={!!query.data?.items.length && launch}>
      <Loaded query={query}>
        {(page) =>
          page.items.length ? (
            <PipelinesTable project={project} items={page.items} />
          ) : (
            <Empty title="No pipelines yet" action={launch}>
              A pipeline is one execution of a recipe, from data to a report.
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}
