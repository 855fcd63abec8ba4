import {
  Alert,
  Badge,
  Button,
  Card,
  Code,
  Group,
  MultiSelect,
  SimpleGrid,
  Stack,
  Switch,
  Table,
  Text,
  Title,
} from "@mantine/core";
import { useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { pipelinesQuery, reportQuery } from "../../api/runs/pipelines";
import { metricsQuery, type RunDetail, runQuery } from "../../api/runs/runs";
import { Chart, type Line } from "../../shared/charts/Chart";
import { Costs } from "../../shared/costs/Costs";
import { Empty, Failure, Loading } from "../../shared/Feedback";
import { result, seconds } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";
import { StateBadge } from "../../shared/StateBadge";
import { MethodsTable } from "../../shared/tables/MethodsTable";
import { differences } from "./differences";

const route = getRouteApi("/p/$project/compare");

export function ComparePage() {
  const { project } = route.useParams();
  const { runs = [] } = route.useSearch();
  const choose = (
    <LinkButton component="a" variant="default" to="/p/$project/runs" params={{ project }} search={{}}>
      Choose runs
    </LinkButton>
  );
  return (
    <Page title="Compare" actions={runs.length > 0 && choose}>
      {runs.length ? (
        <Runs project={project} ids={runs} />
      ) : (
        <Empty title="No runs chosen" action={choose}>
          Select two or more on the Runs page to compare their curves, settings and results. The link keeps
          the selection.
        </Empty>
      )}
      <Methods project={project} />
    </Page>
  );
}

function Runs({ project, ids }: { project: string; ids: string[] }) {
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

interface Compared {
  project: string;
  runs: RunDetail[];
  labels: string[];
}

function Curves({ project, runs, labels }: Compared) {
  const { metric: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const queries = useQueries({ queries: runs.map((run) => metricsQuery(project, run.id, !run.ended_at)) });
  const stamp = queries.map((query) => query.dataUpdatedAt).join();
  const names = useMemo(
    () => {
      const all = queries.flatMap((query) =>
        (query.data ?? []).filter((series) => series.steps > 1).map((series) => series.name),
      );
      return [...new Set(all)].sort(
        (a, b) => all.filter((n) => n === b).length - all.filter((n) => n === a).length || a.localeCompare(b),
      );
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

function Settings({ project, runs, labels }: Compared) {
  const [all, setAll] = useState(false);
  const rows = differences(
    runs.map((run) => ({
      ...run.config,
      ...Object.fromEntries(run.inputs.map((input) => [`input ${input.name}`, input.label])),
    })),
    all,
  );
  const results = [
    ...new Set(
      runs.flatMap((run) =>
        Object.entries(run.summary ?? {})
          .filter(([, value]) => typeof value === "number")
          .map(([name]) => name),
      ),
    ),
  ];
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          Results and settings
        </Title>
        <Switch
          label="Show equal rows too"
          checked={all}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
      </Group>
      <Table.ScrollContainer minWidth={480}>
        <Table aria-label="Settings and results of the runs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{""}</Table.Th>
              {runs.map((run, at) => (
                <Table.Th key={run.id}>
                  <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: run.id }}>
                    {labels[at]}
                  </Link>
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            <Table.Tr>
              <Table.Th scope="row">state</Table.Th>
              {runs.map((run) => (
                <Table.Td key={run.id}>
                  <StateBadge state={run.state} />
                </Table.Td>
              ))}
            </Table.Tr>
            <Table.Tr>
              <Table.Th scope="row">device time</Table.Th>
              {runs.map((run) => (
                <Table.Td key={run.id}>{seconds(run.device_seconds)}</Table.Td>
              ))}
            </Table.Tr>
            {results.map((name) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name.replaceAll("_", " ")}</Table.Th>
                {runs.map((run) => {
                  const value = run.summary?.[name];
                  return (
                    <Table.Td key={run.id}>{typeof value === "number" ? result(name, value) : "–"}</Table.Td>
                  );
                })}
              </Table.Tr>
            ))}
            <Table.Tr>
              <Table.Th colSpan={runs.length + 1} scope="rowgroup" pt="lg">
                {all ? "Settings" : rows.length ? "Settings that differ" : "No setting differs"}
              </Table.Th>
            </Table.Tr>
            {rows.map((row) => (
              <Table.Tr key={row.name}>
                <Table.Th scope="row">{row.name}</Table.Th>
                {row.values.map((value, at) => (
                  <Table.Td key={at}>
                    <Code
                      color={row.differs ? "yellow.1" : undefined}
                      c={row.differs ? "dark.9" : undefined}
                      style={{ display: "inline-block", whiteSpace: "pre-line" }}
                    >
                      {value}
                    </Code>
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  );
}

/** All methods of the finished pipelines that one chooses, on one scale. */
function Methods({ project }: { project: string }) {
  const pipelines = useQuery(pipelinesQuery(project));
  const finished = (pipelines.data?.items ?? []).filter((one) => one.state === "succeeded");
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
