import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { createLink, getRouteApi } from "@tanstack/react-router";
import { pipelinesQuery } from "../../api/runs";
import { useMay } from "../../api/session";
import { Empty, Loaded } from "../../shared/Feedback";
import { Page } from "../../shared/Page";
import { PipelinesTable } from "../../shared/PipelinesTable";

const LinkButton = createLink(Button<"a">);

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
    <Page title="Pipelines" actions={launch}>
      <Loaded query={query}>
        {(page) =>
          page.items.length ? (
            <PipelinesTable project={project} items={page.items} />
          ) : (
            <Empty title="No pipelines yet">
              A pipeline is one execution of a recipe, from data to a report.
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}
