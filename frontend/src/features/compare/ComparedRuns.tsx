import { Badge, Button, Group, Stack, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type RunDetail, runQuery } from "../../api/runs/runs";
import { Costs } from "../../shared/costs/Costs";
import { Failure, Loading } from "../../shared/Feedback";
import { Curves } from "./Curves";
import { Settings } from "./Settings";

const route = getRouteApi("/p/$project/compare");

/** Curves, costs and settings of the chosen runs. */
export function ComparedRuns({ project, ids }: { project: string; ids: string[] }) {
  const navigate = route.useNavigate();
  const details = useQueries({ queries: ids.map((id) => runQuery(project, id)) });
  const failed = details.find((one) => one.error);
  if (failed) return <Failure error={failed.error!} retry={() => void failed.refetch()} />;
  const runs = details.map((one) => one.data).filter((one): one is RunDetail => one !== undefined);
  if (runs.length < ids.length) return <Loading />;
  const names = labels(runs);
  return (
    <Stack gap="xl">
      <Group gap="sm">
        {runs.map((run, at) => (
          <Badge
            key={run.id}
            size="lg"
            color="gray"
            rightSection={
              <Button
                variant="transparent"
                size="compact-xs"
                px={2}
                aria-label={`Take ${names[at]} out`}
                onClick={() =>
                  void navigate({ search: (old) => ({ ...old, runs: ids.filter((id) => id !== run.id) }) })
                }
              >
                ×
              </Button>
            }
          >
            {names[at]}
          </Badge>
        ))}
      </Group>
      <Curves project={project} runs={runs} labels={names} />
      <section>
        <Title order={2} size="h4" mb="sm">
          Cost
        </Title>
        <Costs
          costs={runs.map((run, at) => ({ label: names[at]!, ledger: run.ledger }))}
          label="Cost of the runs by phase"
        />
      </section>
      <Settings project={project} runs={runs} labels={names} />
    </Stack>
  );
}

/** What distinguishes the runs: the stages of two pipelines have the same names. */
function labels(runs: RunDetail[]): string[] {
  return runs.map((run) => {
    const alike = runs.filter((other) => other.name === run.name);
    if (alike.length < 2) return run.name;
    const unique = alike.filter((other) => other.pipeline?.name === run.pipeline?.name).length < 2;
    return unique && run.pipeline
      ? `${run.pipeline.name} · ${run.name}`
      : `${run.name} · ${run.id.slice(-6)}`;
  });
}
