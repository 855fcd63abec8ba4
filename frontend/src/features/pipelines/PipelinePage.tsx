import { Alert, Button, Code, Group, ScrollArea, Stack, Tabs, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { everything, type Schemas } from "../../api/client";
import { cancelPipeline, pipelineQuery, resumePipeline } from "../../api/runs/pipelines";
import { type Run, runQuery } from "../../api/runs/runs";
import { useMay } from "../../api/accounts/session";
import { useNow } from "../../shared/format/clock";
import { Costs } from "../../shared/costs/Costs";
import { LoadedPage } from "../../shared/Feedback";
import { withoutShortcuts } from "../../shared/charts/graph";
import { seconds } from "../../shared/format/format";
import { Graph, type GraphNode } from "../../shared/charts/Graph";
import { Link, LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";
import { RunsTable } from "../../shared/tables/RunsTable";
import { StateBadge } from "../../shared/StateBadge";
import { deviceTime, pipelineTime, timeTaken } from "../../shared/format/runTime";
import { WithCode } from "../../shared/text/WithCode";
import { ReportView } from "./ReportView";
import { RoundsView } from "./rounds/RoundsView";
import { DroppedVariants } from "./sweep/DroppedVariants";
import { SweepView } from "./sweep/SweepView";
import { Confirm } from "../../shared/Confirm";

const route = getRouteApi("/p/$project/pipelines/$pipeline");
const ENDED = ["succeeded", "failed", "cancelled"];
const TABS = ["report", "sweep", "rounds", "stages", "recipe"];
const COLOR: Record<string, string> = {
  pending: "gray",
  queued: "indigo",
  running: "blue",
  succeeded: "green",
  failed: "red",
  cancelled: "gray",
  skipped: "gray",
  paused: "yellow",
};

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
    onError: (error) =>
      notifications.show({ title: "It was not resumed", message: error.message, color: "red" }),
  });
  const [asking, ask] = useDisclosure();
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const active = !ENDED.includes(pipeline.state);
  const failed = pipeline.runs.filter((run) => run.state === "failed");
  const broken = pipeline.runs.filter((run) => run.state === "failed" || run.state === "cancelled").length;
  const cancelling = pipeline.runs.some((run) => active && run.cancel_requested_at && !run.ended_at);
  const swept = !!pipeline.settings.sweep;
  const rounds = !!pipeline.settings.rounds;
  const own = swept ? "sweep" : rounds ? "rounds" : "report";
  const first = pipeline.state === "failed" ? "stages" : own;
  const there = (name: string) =>
    TABS.includes(name) && (name !== "sweep" || swept) && (name !== "rounds" || rounds);
  const open = tab && there(tab) ? tab : first;
  const skipped = pipeline.runs.find((run) => run.reason_code === "round_left_out");
  return (
    <Page
      title={pipeline.name}
      beside={<StateBadge state={pipeline.state} />}
      about={`Recipe ${pipeline.recipe}, launched by ${pipeline.created_by}; ${timeOf(pipeline, now)}, ${seconds(deviceTime(pipeline))} of device time${active ? " so far" : ""}`}
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
        keep="Keep it running"
        go="Cancel the pipeline"
        pending={cancel.isPending}
        error={cancel.error}
        onClose={ask.close}
        onGo={() => cancel.mutate()}
      >
        Running and waiting stages are cancelled. Finished stages stay and are reused by an equal launch.
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
      <StageGraph project={project} runs={pipeline.runs} />
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
    </Page>
  );
}

function timeOf(pipeline: Schemas["PipelineDetail"], now: number): string {
  const { waits, took } = pipelineTime(pipeline, now);
  if (waits !== null) return `waiting for a worker for ${seconds(waits)}`;
  if (took === null)
    return pipeline.state === "succeeded" ? "nothing had to run" : "ended before a worker took it";
  return `${pipeline.ended_at ? "took" : "running for"} ${seconds(took)}`;
}

function StageGraph({ project, runs }: { project: string; runs: Run[] }) {
  const details = useQueries({
    queries: runs.map((run) => ({ ...runQuery(project, run.id), staleTime: Infinity })),
  });
  const now = useNow();
  const inputs = details.map((detail) => detail.data?.inputs);
  const ready = inputs.every(Boolean);
  const edges = useMemo(() => {
    const made = new Map(
      runs.flatMap((run, at) => (details[at]?.data?.outputs ?? []).map((out) => [out.id, run.id])),
    );
    const all = runs.flatMap((run, at) =>
      (inputs[at] ?? []).map((input) => ({
        source: input.type === "run" ? input.id : (made.get(input.id) ?? input.id),
        target: run.id,
      })),
    );
    return withoutShortcuts(all);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- edges change with what is known of the runs only
  }, [ready, runs.length]);
  const nodes = runs.map((run): GraphNode => {
    const progress = run.progress as { done: number; total: number; phase: string } | null;
    const running = ["running", "pending"].includes(run.state) && progress?.total;
    return {
      id: run.id,
      title: run.name.split(".").at(-1) ?? run.name,
      detail: running
        ? `${progress.phase} ${Math.round((100 * progress.done) / progress.total)}%`
        : run.reused_from_id
          ? "reused"
          : run.state === "succeeded"
            ? seconds(timeTaken(run, now))
            : run.state,
      color: COLOR[run.state] ?? "gray",
      href: `/p/${project}/runs/${run.id}`,
      share: running ? progress.done / progress.total : undefined,
    };
  });
  return <Graph nodes={nodes} edges={edges} label="Stages of the pipeline and what each one needs" />;
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
