import { Button, Code, Group, ScrollArea, Tabs, Text } from "@mantine/core";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { api, data, type Schemas } from "../../api/client";
import { pipelineQuery, runQuery, type Run } from "../../api/runs";
import { useMay } from "../../api/session";
import { useNow } from "../../shared/clock";
import { Failure, Loaded } from "../../shared/Feedback";
import { between, seconds } from "../../shared/format";
import { Graph, type GraphNode } from "../../shared/Graph";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { RunsTable } from "../../shared/RunsTable";
import { StateBadge } from "../../shared/StateBadge";
import { ReportView } from "./ReportView";

const route = getRouteApi("/p/$project/pipelines/$pipeline");
const ENDED = ["succeeded", "failed", "cancelled"];
const COLOR: Record<string, string> = {
  pending: "gray",
  queued: "indigo",
  running: "blue",
  succeeded: "green",
  failed: "red",
  cancelled: "gray",
};

export function PipelinePage() {
  const { project, pipeline } = route.useParams();
  const query = useQuery(pipelineQuery(project, pipeline));
  return <Loaded query={query}>{(found) => <PipelineView project={project} pipeline={found} />}</Loaded>;
}

function PipelineView({ project, pipeline }: { project: string; pipeline: Schemas["PipelineDetail"] }) {
  const now = useNow();
  const mayRun = useMay(project, "run");
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/pipelines/{pipeline}/cancel", {
          params: { path: { project, pipeline: pipeline.id } },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: [project] }),
  });
  const active = !ENDED.includes(pipeline.state);
  const again = { recipe: pipeline.recipe };
  return (
    <Page
      title={pipeline.name}
      beside={<StateBadge state={pipeline.state} />}
      about={`Recipe ${pipeline.recipe}, started by ${pipeline.created_by}; took ${seconds(between(pipeline.created_at, pipeline.ended_at, now))}, ${seconds(pipeline.device_seconds)} of device time`}
      actions={
        mayRun && (
          <Group gap="xs">
            <Link to="/p/$project/launch" params={{ project }} search={again}>
              Launch it again
            </Link>
            {active && (
              <Button color="red" variant="light" loading={cancel.isPending} onClick={() => cancel.mutate()}>
                Cancel
              </Button>
            )}
          </Group>
        )
      }
    >
      {cancel.error && <Failure error={cancel.error} />}
      <StageGraph project={project} runs={pipeline.runs} />
      <Tabs defaultValue="report" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="report">Report</Tabs.Tab>
          <Tabs.Tab value="stages">Stages</Tabs.Tab>
          <Tabs.Tab value="recipe">Recipe</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="report" pt="md">
          <ReportView project={project} pipeline={pipeline.id} live={active} />
        </Tabs.Panel>
        <Tabs.Panel value="stages" pt="md">
          <RunsTable runs={pipeline.runs} label="Stages" />
        </Tabs.Panel>
        <Tabs.Panel value="recipe" pt="md">
          <Recipe pipeline={pipeline} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
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
    return runs.flatMap((run, at) =>
      (inputs[at] ?? []).map((input) => ({
        source: input.type === "run" ? input.id : (made.get(input.id) ?? input.id),
        target: run.id,
      })),
    );
    // eslint-disable-next-line react-hooks/exhaustive-deps -- edges change with what is known of the runs only
  }, [ready, runs.length]);
  const nodes = runs.map((run): GraphNode => {
    const progress = run.progress as { done: number; total: number; phase: string } | null;
    const running = run.state === "running" && progress?.total;
    return {
      id: run.id,
      title: run.name.split(".").at(-1) ?? run.name,
      detail: running
        ? `${progress.phase} ${Math.round((100 * progress.done) / progress.total)}%`
        : run.reused_from_id
          ? "reused"
          : run.state === "succeeded"
            ? seconds(between(run.started_at, run.ended_at, now))
            : run.state,
      color: COLOR[run.state] ?? "gray",
      href: `/p/${project}/runs/${run.id}`,
      share: running ? progress.done / progress.total : undefined,
    };
  });
  return <Graph nodes={nodes} edges={edges} label="Stages of the pipeline and what each one needs" />;
}

function Recipe({ pipeline }: { pipeline: Schemas["PipelineDetail"] }) {
  return (
    <>
      {Object.keys(pipeline.settings).length > 0 && (
        <Text size="sm" mb="sm">
          Started with <Code>{JSON.stringify(pipeline.settings)}</Code>
        </Text>
      )}
      <ScrollArea tabIndex={0} role="group" aria-label="The recipe's text">
        <Code block>{pipeline.recipe_text}</Code>
      </ScrollArea>
    </>
  );
}
