import { Alert, Grid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { ENDED, type RunDetail, runQuery } from "../../api/runs/runs";
import { ItemComments } from "../../shared/comments/ItemComments";
import { LoadedPage } from "../../shared/Feedback";
import { HeldOutChanges } from "../../shared/HeldOutChanges";
import { runName } from "../../shared/format/runName";
import { Link } from "../../shared/links";
import { MarksPanel } from "../../shared/marks/MarksPanel";
import { PageStar } from "../../shared/marks/Star";
import { Page } from "../../shared/Page";
import { RunProgress } from "../../shared/Progress";
import { RunWarnings } from "../../shared/RunWarnings";
import { RunBadge } from "../../shared/StateBadge";
import { WithCode } from "../../shared/text/WithCode";
import { Findings } from "./Findings";
import { NextSteps } from "./NextSteps";
import { RunAbout } from "./RunAbout";
import { RunActions } from "./RunActions";
import { RunCosts } from "./RunCosts";
import { RunExports } from "./RunExports";
import { RunFigures } from "./RunFigures";
import { RunThings } from "./RunThings";
import { RunTabs } from "./tabs/RunTabs";

const route = getRouteApi("/p/$project/runs/$run");
const LEDGER_MS = 10_000;

export function RunPage() {
  const { project, run } = route.useParams();
  const query = useQuery({
    ...runQuery(project, run),
    // What its phases take moves on without an event.
    refetchInterval: ({ state }) => (state.data?.state === "running" ? LEDGER_MS : false),
  });
  return (
    <LoadedPage
      title="Run"
      query={query}
      others={
        <Link to="/p/$project/runs" params={{ project }} search={{}}>
          All runs
        </Link>
      }
    >
      {(data) => <RunView key={data.id} run={data} />}
    </LoadedPage>
  );
}

function RunView({ run }: { run: RunDetail }) {
  const { project } = route.useParams();
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const ended = ENDED.includes(run.state);
  // What it found comes first once it is known; until then its curves do.
  const things = (
    <Grid>
      <Grid.Col span={{ base: 12, md: 8 }}>
        <RunFigures run={run} />
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 4 }}>
        <RunThings run={run} />
        <RunExports run={run} />
      </Grid.Col>
    </Grid>
  );
  return (
    <Page
      title={runName(run)}
      beside={
        <>
          <PageStar project={project} type="run" item={run.id} name={runName(run)} />
          <RunBadge run={run} />
        </>
      }
      about={<RunAbout run={run} />}
      actions={<RunActions run={run} />}
    >
      <WhyItEnded run={run} />
      <RunWarnings warnings={run.warnings} />
      <Findings run={run} />
      <HeldOutChanges changes={run.held_out_changes} />
      <RunProgress run={run} />
      <NextSteps run={run} />
      {ended && things}
      <RunTabs
        run={run}
        chosen={tab}
        onChoose={(name) => void navigate({ search: { tab: name }, replace: true, resetScroll: false })}
      />
      {!ended && things}
      <RunCosts run={run} />
      <MarksPanel project={project} type="run" item={run.id} />
      <ItemComments project={project} type="run" item={run.id} about="this run" />
    </Page>
  );
}

/** The reason of a run that did not succeed. */
function WhyItEnded({ run }: { run: RunDetail }) {
  if (!run.reason || !ENDED.includes(run.state) || run.state === "succeeded") return null;
  const bad = run.state === "failed";
  return (
    <Alert
      color={bad ? "red" : "gray"}
      variant="light"
      title={bad ? `Failed: ${run.reason_code ?? "unknown"}` : undefined}
    >
      <pre className="text">
        <WithCode text={run.reason} />
      </pre>
      {typeof run.error?.hint === "string" && (
        <Text size="sm" mt="xs">
          <WithCode text={run.error.hint} />
        </Text>
      )}
    </Alert>
  );
}
