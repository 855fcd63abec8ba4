import { getRouteApi } from "@tanstack/react-router";
import { shareRuns } from "../../api/shareLinks";
import { Empty } from "../../shared/Feedback";
import { LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";
import { ShareButton } from "../../shared/sharing/ShareButton";
import { ComparedMethods } from "./ComparedMethods";
import { ComparedRuns } from "./ComparedRuns";

const route = getRouteApi("/p/$project/compare");

export function ComparePage() {
  const { project } = route.useParams();
  const { runs = [], metric = [] } = route.useSearch();
  const choose = (
    <LinkButton component="a" variant="default" to="/p/$project/runs" params={{ project }} search={{}}>
      Choose runs
    </LinkButton>
  );
  return (
    <Page
      title="Compare"
      actions={
        runs.length > 0 && (
          <>
            <ShareButton
              project={project}
              title="Share the comparison"
              shared={{ kind: "runs" }}
              create={(days) => shareRuns(project, runs, metric, days)}
            >
              Anyone with a link can see these runs as they are now without an account: results, costs, the
              settings that differ, and curves.
            </ShareButton>
            {choose}
          </>
        )
      }
    >
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
