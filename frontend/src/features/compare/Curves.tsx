import { Card, Group, MultiSelect, SimpleGrid, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { metricsQuery } from "../../api/runs/runs";
import { Chart, type Line } from "../../shared/charts/Chart";
import { Loading } from "../../shared/Feedback";
import type { Compared } from "./compared";

const route = getRouteApi("/p/$project/compare");

/** Each chosen metric of all runs in one chart. */
export function Curves({ project, runs, labels }: Compared) {
  const { metric: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  // A reused run has the curves of the one that did the work.
  const queries = useQueries({
    queries: runs.map((run) => metricsQuery(project, run.reused_from_id ?? run.id, !run.ended_at)),
  });
  const stamp = queries.map((query) => query.dataUpdatedAt).join();
  const names = useMemo(
    () => {
      const all = queries.flatMap((query) =>
        (query.data ?? []).filter((series) => series.steps > 1).map((series) => series.name),
      );
      const shared = (name: string) => all.filter((one) => one === name).length;
      // Each run's are in the order of their importance, which this sort keeps.
      return [...new Set(all)].sort((a, b) => shared(b) - shared(a));
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the stamp changes exactly when an answer came
    [stamp],
  );
  const usual = names.filter((name) => ["loss", "pair_accuracy", "tokens_per_second"].includes(name));
  const shown = chosen ?? (usual.length ? usual : names.slice(0, 2));
  if (!names.length)
    return queries.some((query) => query.isPending) ? (
      <Loading rows={3} />
    ) : (
      <Text size="sm" c="dimmed">
        None of these runs has logged a curve.
      </Text>
    );
  return (
    <section>
      <Group justify="space-between" mb="sm" align="flex-end">
        <Title order={2} size="h4">
          Curves
        </Title>
        <MultiSelect
          aria-label="Metrics"
          data={names}
          value={shown}
          onChange={(metric) =>
            void navigate({
              search: (old) => ({ ...old, metric: metric.length ? metric : undefined }),
              replace: true,
              resetScroll: false,
            })
          }
          searchable
          w={420}
          maw="100%"
        />
      </Group>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        {shown.map((name) => (
          <Overlay
            key={name}
            name={name}
            lines={runs.flatMap((_, at) => {
              const series = queries[at]?.data?.find((one) => one.name === name);
              return series
                ? [
                    {
                      label: labels[at]!,
                      points: series.points.map((point) => ({ x: point.step, y: point.value })),
                    },
                  ]
                : [];
            })}
          />
        ))}
      </SimpleGrid>
    </section>
  );
}

function Overlay({ name, lines }: { name: string; lines: Line[] }) {
  return (
    <Card withBorder p="sm">
      <Text fw={600} size="sm" mb={4}>
        {name.replaceAll("_", " ")}
      </Text>
      <Chart lines={lines} x="step" y={name} height={260} titled />
    </Card>
  );
}
