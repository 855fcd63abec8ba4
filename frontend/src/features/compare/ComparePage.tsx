import { getRouteApi } from "@tanstack/react-router";
import { Empty } from "../../shared/Feedback";
import { LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";
import { ComparedMethods } from "./ComparedMethods";
import { ComparedRuns } from "./ComparedRuns";

const route = getRouteApi("/p/$project/compare");

export function ComparePage() {
  const { project } = route.useParams();
  const { runs = [] } = route.useSearch();
  const choose = (
    <LinkButton component="a" variant="default" to="/p/$project/runs" params={{ project }} search={{}}>
      Choose runs
    </LinkButton>
  );
  return (
    <Page title="Compare" actions={runs.length > 0 && choose}>
      {runs.length ? (
        <ComparedRuns project={project} ids={runs} />
      ) : (
        <Empty title="No runs chosen" action={choose}>
          Select two or more on the Runs page to compare their curves, settings and results. The link keeps
          the selection.
        </Empty>
      )}
      <ComparedMethods project={project} />
    </Page>
  );
}
