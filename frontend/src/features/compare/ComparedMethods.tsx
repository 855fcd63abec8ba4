import { Alert, Group, MultiSelect, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { pipelinesQuery, reportQuery } from "../../api/runs/pipelines";
import { MethodsTable } from "./MethodsTable";
import { useByName } from "../../shared/forms/useByName";

const route = getRouteApi("/p/$project/compare");

/** All methods of the finished pipelines that one chooses, on one scale. */
export function ComparedMethods({ project }: { project: string }) {
  const pipelines = useByName((name) => pipelinesQuery(project, name));
  const finished = (pipelines.data ?? []).filter((one) => one.state === "succeeded");
  const { pipeline: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const shown = chosen ?? finished.slice(0, 1).map((one) => one.name);
  const reports = useQueries({ queries: shown.map((name) => reportQuery(project, name)) });
  if (!finished.length) return null;
  return (
    <section>
      <Group justify="space-between" mb="sm" align="flex-end">
        <Title order={2} size="h4">
          Methods
        </Title>
        <MultiSelect
          aria-label="Pipelines"
          data={finished.map((one) => one.name)}
          value={shown}
          onChange={(pipeline) =>
            void navigate({
              search: (old) => ({ ...old, pipeline: pipeline.length ? pipeline : undefined }),
              replace: true,
              resetScroll: false,
            })
          }
          searchable
          onSearchChange={pipelines.onSearchChange}
          w={320}
          maw="100%"
        />
      </Group>
      {shown.length > 1 && (
        <Alert color="gray" variant="light" mb="sm">
          Each pipeline measures rewards in z units of its own labelled data: compare rows across pipelines
          only where these are the same.
        </Alert>
      )}
      <MethodsTable
        groups={shown.flatMap((name, at) =>
          reports[at]?.data
            ? [{ title: name, rows: reports[at].data.methods, baseline: reports[at].data.baseline }]
            : [],
        )}
      />
    </section>
  );
}
