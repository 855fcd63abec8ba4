import { Badge, Button, ColorSwatch, Group, Stack, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type RunDetail, runQuery } from "../../api/runs/runs";
import { colorOf } from "../../shared/charts/colors";
import { Costs } from "../../shared/costs/Costs";
import { useColorPlaces } from "../../shared/curves/useColorPlaces";
import { runName } from "../../shared/format/runName";
import { Failure, Loading } from "../../shared/Feedback";
import { Curves } from "./Curves";
import { Settings } from "./Settings";

const route = getRouteApi("/p/$project/compare");

/** Curves, costs and settings of the chosen runs. */
export function ComparedRuns({ project, ids }: { project: string; ids: string[] }) {
  const navigate = route.useNavigate();
  const details = useQueries({ queries: ids.map((id) => runQuery(project, id)) });
  const places = useColorPlaces(ids);
  const failed = details.find((one) => one.error);
  if (failed) return <Failure error={failed.error!} retry={() => void failed.refetch()} />;
  const runs = details.map((one) => one.data).filter((one): one is RunDetail => one !== undefined);
  if (runs.length < ids.length) return <Loading />;
  const names = labels(runs);
  const colors = ids.map((id) => places.get(id)!);
  return (
    <Stack gap="xl">
      <Group gap="sm">
        {runs.map((run, at) => (
          <Badge
            key={run.id}
            size="lg"
            color="gray"
            leftSection={<ColorSwatch size={12} color={colorOf(colors[at]!)} withShadow={false} />}
            rightSection={
              <Button
                variant="transparent"
                size="compact-xs"
                px={2}
                aria-label={`Remove ${names[at]}`}
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
      <Curves project={project} runs={runs} labels={names} colors={colors} />
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

/** What distinguishes the runs: two of their own may have the same name. */
function labels(runs: RunDetail[]): string[] {
  return runs.map((run) => {
    const alike = runs.filter((other) => runName(other) === runName(run));
    return alike.length < 2 ? runName(run) : `${runName(run)} · ${run.id.slice(-6)}`;
  });
}
