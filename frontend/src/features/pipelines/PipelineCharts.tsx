import { Group, MultiSelect, Stack } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type Run, type RunDetail, runQuery } from "../../api/runs/runs";
import { RunsCurves } from "../../shared/curves/RunsCurves";
import { useColorPlaces } from "../../shared/curves/useColorPlaces";
import { Empty } from "../../shared/Feedback";
import { LinkButton } from "../../shared/links";
import { RunProgress } from "../../shared/Progress";
import { chartedStages, withCharts } from "./chartedStages";

const route = getRouteApi("/p/$project/pipelines/$pipeline");
/** Runs in one chart at most: there are no more colours and dashes that can be told apart. */
const MOST = 12;

/** The curves of the stages that run now, or of those that are chosen, several in the same charts. */
export function PipelineCharts({ project, runs }: { project: string; runs: Run[] }) {
  const { stages, group } = route.useSearch();
  const navigate = route.useNavigate();
  const change = (some: { stages?: string[]; group?: string }) =>
    void navigate({
      search: (old) => ({ ...old, tab: "charts", ...some }),
      replace: true,
      resetScroll: false,
    });
  const trained = withCharts(runs);
  const places = useColorPlaces(trained.map((run) => run.id));
  const known = stages?.filter((name) => trained.some((run) => run.name === name));
  const shown = known ?? chartedStages(runs).slice(0, MOST);
  const chosen = trained.filter((run) => shown.includes(run.name));
  const details = useDetails(project, chosen.length > 1 ? chosen.map((run) => run.id) : []);
  if (!trained.length)
    return (
      <Empty title="No charts">None of the stages trains; their logs and results are under Stages.</Empty>
    );
  return (
    <Stack gap="md">
      {runs
        .filter((run) => run.state === "running")
        .map((run) => (
          <Group key={run.id} gap="md" wrap="nowrap">
            <LinkButton
              component="a"
              variant="default"
              size="xs"
              to="/p/$project/runs/$run"
              params={{ project, run: run.id }}
            >
              {run.name}
            </LinkButton>
            <div style={{ flex: 1 }}>
              <RunProgress run={run} />
            </div>
          </Group>
        ))}
      <MultiSelect
        label="Stages in the charts"
        data={trained.map((run) => ({ value: run.name, label: `${run.name} (${run.state})` }))}
        value={shown}
        onChange={(names) => change({ stages: names })}
        maxValues={MOST}
        searchable
        hidePickedOptions
        placeholder={shown.length ? "" : "Choose a stage"}
      />
      {chosen.length > 0 && (
        <RunsCurves
          project={project}
          runs={chosen.map((run) => details.get(run.id) ?? run)}
          labels={chosen.map((run) => run.name)}
          colors={chosen.map((run) => places.get(run.id)!)}
          groupBy={group}
          onGroupBy={(by) => change({ group: by ?? undefined })}
        />
      )}
    </Stack>
  );
}

/** The runs with their settings, by which several can be put into groups. */
function useDetails(project: string, ids: string[]): ReadonlyMap<string, RunDetail> {
  const queries = useQueries({ queries: ids.map((id) => runQuery(project, id)) });
  return new Map(queries.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])));
}
