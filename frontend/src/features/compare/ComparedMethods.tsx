import { Alert, Group, MultiSelect, Stack, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { pipelinesQuery, reportQuery } from "../../api/runs/pipelines";
import { useByName } from "../../shared/forms/useByName";
import { Link } from "../../shared/links";
import { MethodsView } from "../../shared/report/MethodsView";

const route = getRouteApi("/p/$project/compare");

/** The methods of finished pipelines that one chooses, as their reports have them. */
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
      <Stack gap="lg">
        {shown.map((name, at) => {
          const report = reports[at]?.data?.report;
          return (
            report && (
              <section key={name} aria-label={`Methods of ${name}`}>
                <Link to="/p/$project/pipelines/$pipeline" params={{ project, pipeline: name }} fw={600}>
                  {name}
                </Link>
                {report.headline && <Text size="sm">{report.headline.text}</Text>}
                <MethodsView report={report} />
              </section>
            )
          );
        })}
      </Stack>
    </section>
  );
}
