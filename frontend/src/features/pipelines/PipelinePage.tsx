import { Alert, Button, Code, Group, ScrollArea, Stack, Tabs, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { everything, type Schemas } from "../../api/client";
import { cancelPipeline, pipelineQuery, resumePipeline } from "../../api/runs/pipelines";
import { changeRuns } from "../../api/runs/list";
import { useMay } from "../../api/accounts/session";
import { useNow } from "../../shared/format/clock";
import { ItemComments } from "../../shared/comments/ItemComments";
import { Costs } from "../../shared/costs/Costs";
import { LoadedPage } from "../../shared/Feedback";
import { seconds } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { MarksPanel } from "../../shared/marks/MarksPanel";
import { PageStar } from "../../shared/marks/Star";
import { Page } from "../../shared/Page";
import { RunsTable } from "../../shared/tables/RunsTable";
import { StateBadge } from "../../shared/StateBadge";
import { deviceTime, pipelineTime } from "../../shared/format/runTime";
import { WithCode } from "../../shared/text/WithCode";
import { withCharts } from "./chartedStages";
import { Outlook } from "./Outlook";
import { PipelineCharts } from "./PipelineCharts";
import { ReportView } from "./ReportView";
import { RoundsView } from "./rounds/RoundsView";
import { DroppedVariants } from "./sweep/DroppedVariants";
import { StageGraph } from "./StageGraph";
import { SweepView } from "./sweep/SweepView";
import { Confirm } from "../../shared/Confirm";

const route = getRouteApi("/p/$project/pipelines/$pipeline");
const ENDED = ["succeeded", "failed", "cancelled"];
const TABS = ["report", "sweep", "rounds", "charts", "stages", "recipe"];

export function PipelinePage() {
  const { project, pipeline } = route.useParams();
  const query = useQuery(pipelineQuery(project, pipeline));
  return (
    <LoadedPage
      title="Pipeline"
      query={query}
      others={
        <Link to="/p/$project/pipelines" params={{ project }}>
          All pipelines
        </Link>
      }
    >
      {(found) => <PipelineView key={found.id} project={project} pipeline={found} />}
    </LoadedPage>
  );
}

function PipelineView({ project, pipeline }: { project: string; pipeline: Schemas["PipelineDetail"] }) {
  const now = useNow();
  const mayRun = useMay(project, "run");
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => cancelPipeline(project, pipeline.id),
    onSuccess: async () => {
      ask.close();
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  const resume = useMutation({
    mutationFn: () => resumePipeline(project, pipeline.id),
    onSuccess: () => client.invalidateQueries({ queryKey: everything(project) }),
    onError: (error) => notifications.show({ title: "Resume failed", message: error.message, color: "red" }),
  });
  const [asking, ask] = useDisclosure();
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const active = !ENDED.includes(pipeline.state);
  // The time of stages that have ended: nothing to tell before the first one has.
  const time = deviceTime(pipeline);
  const spent = time > 0 && `, ${seconds(time)} of device time${active ? " in stages that have ended" : ""}`;
  const failed = pipeline.runs.filter((run) => run.state === "failed");
  const broken = pipeline.runs.filter((run) => run.state === "failed" || run.state === "cancelled").length;
  const cancelling = pipeline.runs.some((run) => active && run.cancel_requested_at && !run.ended_at);
  const swept = !!pipeline.settings.sweep;
  const rounds = !!pipeline.settings.rounds;
  const own = swept ? "sweep" : rounds ? "rounds" : "report";
  const trains = withCharts(pipeline.runs).some((run) => run.started_at !== null);
  const first = pipeline.state === "failed" ? "stages" : active && trains ? "charts" : own;
  const there = (name: string) =>
    TABS.includes(name) && (name !== "sweep" || swept) && (name !== "rounds" || rounds);
  const open = tab && there(tab) ? tab : first;
  const skipped = pipeline.runs.find((run) => run.reason_code === "round_left_out");
  return (
    <Page
      title={pipeline.name}
      beside={
        <>
          <StateBadge state={pipeline.state} />
          <PageStar project={project} type="pipeline" item={pipeline.id} name={pipeline.name} />
        </>
      }
      about={`Recipe ${pipeline.recipe}, launched by ${pipeline.created_by}; ${timeOf(pipeline, now)}${spent || ""}`}
      actions={
        mayRun && (
          <Group gap="xs">
            <LinkButton
              component="a"
              variant="default"
              to="/p/$project/launch"
              params={{ project }}
              search={{ recipe: pipeline.recipe, from: pipeline.name }}
            >
              Launch it again
            </LinkButton>
            {broken > 0 && !cancelling && (
              <Tooltip label="Each continues from its newest checkpoint. Finished stages are kept.">
                <Button variant="default" loading={resume.isPending} onClick={() => resume.mutate()}>
                  {broken === 1 ? "Resume 1 stage" : `Resume ${broken} stages`}
                </Button>
              </Tooltip>
            )}
            {active && (
              <Button color="red" variant="light" onClick={ask.open}>
                Cancel
              </Button>
            )}
          </Group>
        )
      }
    >
      <Confirm
        title={asking ? `Cancel ${pipeline.name}?` : null}
        keep="Keep running"
        go="Cancel the pipeline"
        pending={cancel.isPending}
        error={cancel.error}
        onClose={ask.close}
        onGo={() => cancel.mutate()}
      >
        Running and waiting stages are cancelled. Finished stages are kept and reused by an identical launch.
      </Confirm>
      {failed.map((run) => (
        <Alert key={run.id} color="red" variant="light" title={`${run.name} failed`}>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            <WithCode text={run.reason} />
          </Text>
          <Link size="sm" underline="always" to="/p/$project/runs/$run" params={{ project, run: run.id }}>
            Log and next steps
          </Link>
        </Alert>
      ))}
      {skipped && (
        <Alert color="gray" variant="light" title="The rounds were stopped">
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {skipped.reason[0]!.toUpperCase() + skipped.reason.slice(1)}.
          </Text>
        </Alert>
      )}
      {pipeline.runs.some((run) => run.reason_code === "variant_dropped") && (
        <DroppedVariants project={project} pipeline={pipeline.id} />
      )}
      {active && <Outlook project={project} pipeline={pipeline.id} />}
      <StageGraph project={project} runs={pipeline.runs} />
      <MarksPanel
        project={project}
        type="pipeline"
        item={pipeline.id}
        deletion={{
          name: pipeline.name,
          about:
            "Its stages are deleted with their logs and metrics. Models and datasets that they made are kept.",
          remove: () => changeRuns(project, deletionOf(pipeline)),
          onGone: () => navigate({ to: "/p/$project/pipelines", params: { project } }),
        }}
      />
      <Tabs
        value={open}
        keepMounted={false}
        onChange={(name) =>
          name && void navigate({ search: { tab: name }, replace: true, resetScroll: false })
        }
      >
        <Tabs.List>
          {swept && <Tabs.Tab value="sweep">Sweep</Tabs.Tab>}
          {rounds && <Tabs.Tab value="rounds">Rounds</Tabs.Tab>}
          <Tabs.Tab value="report">Report</Tabs.Tab>
          <Tabs.Tab value="charts">Charts</Tabs.Tab>
          <Tabs.Tab value="stages">Stages</Tabs.Tab>
          <Tabs.Tab value="recipe">Recipe</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="report" pt="md">
          <ReportView project={project} pipeline={pipeline.id} live={active} />
        </Tabs.Panel>
        {swept && (
          <Tabs.Panel value="sweep" pt="md">
            <SweepView project={project} pipeline={pipeline.id} runs={pipeline.runs} />
          </Tabs.Panel>
        )}
        {rounds && (
          <Tabs.Panel value="rounds" pt="md">
            <RoundsView project={project} pipeline={pipeline.id} runs={pipeline.runs} />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="charts" pt="md">
          <PipelineCharts project={project} runs={pipeline.runs} />
        </Tabs.Panel>
        <Tabs.Panel value="stages" pt="md">
          <Stack gap="xl">
            <RunsTable runs={pipeline.runs} label="Stages" />
            <Costs
              costs={[{ label: pipeline.name, ledger: pipeline.ledger }]}
              label={`Cost of ${pipeline.name} by phase`}
            />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="recipe" pt="md">
          <Recipe pipeline={pipeline} />
        </Tabs.Panel>
      </Tabs>
      <ItemComments project={project} type="pipeline" item={pipeline.id} about="this pipeline" />
    </Page>
  );
}

const deletionOf = (pipeline: Schemas["PipelineDetail"]): Schemas["BulkChange"] => ({
  action: "delete",
  runs: pipeline.runs.map((run) => run.id),
  add_tags: [],
  remove_tags: [],
  skip: false,
});

function timeOf(pipeline: Schemas["PipelineDetail"], now: number): string {
  const { waits, took } = pipelineTime(pipeline, now);
  if (waits !== null) return `waiting for a worker for ${seconds(waits)}`;
  if (took === null)
    return pipeline.state === "succeeded" ? "nothing had to run" : "ended before a worker took it";
  if (pipeline.state === "paused") return `begun ${seconds(took)} ago`;
  return `${pipeline.ended_at ? "took" : "running for"} ${seconds(took)}`;
}

function Recipe({ pipeline }: { pipeline: Schemas["PipelineDetail"] }) {
  const { overrides = [], notes = [] } = pipeline.settings as { overrides?: string[]; notes?: string[] };
  return (
    <>
      {overrides.length > 0 && (
        <Group gap={6} mb="sm">
          <Text size="sm">Started with</Text>
          {overrides.map((override) => (
            <Code key={override} style={{ overflowWrap: "anywhere" }}>
              {override}
            </Code>
          ))}
        </Group>
      )}
      {notes.map((note) => (
        <Text key={note} size="sm" mb="sm">
          Note: {note}.
        </Text>
      ))}
      <ScrollArea tabIndex={0} role="group" aria-label="The recipe's text">
        <Code block>{pipeline.recipe_text}</Code>
      </ScrollArea>
    </>
  );
}
