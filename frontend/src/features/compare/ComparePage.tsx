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
import { metricsQuery, pipelinesQuery, reportQuery, runQuery, type RunDetail } from "../../api/runs";
import { Chart, type Line } from "../../shared/Chart";
import { Empty, Failure, Loading } from "../../shared/Feedback";
import { seconds, short } from "../../shared/format";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { StateBadge } from "../../shared/StateBadge";
import { MethodsTable } from "../../shared/MethodsTable";
import { differences } from "./differences";

const route = getRouteApi("/p/$project/compare");

export function ComparePage() {
  const { project } = route.useParams();
  const { runs = [] } = route.useSearch();
  return (
    <Page title="Compare">
      {runs.length ? (
        <Runs project={project} ids={runs} />
      ) : (
        <Empty title="No runs chosen">
          Tick two or more on the Runs page, and compare them here: curves, settings and results. The link
          keeps the choice.
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
  return (
    <Stack gap="xl">
      <Group gap="sm">
        {runs.map((run) => (
          <Badge
            key={run.id}
            size="lg"
            color="gray"
            rightSection={
              <Button
                variant="transparent"
                size="compact-xs"
                px={2}
                aria-label={`Take ${run.name} out`}
                onClick={() => void navigate({ search: { runs: ids.filter((id) => id !== run.id) } })}
              >
                ×
              </Button>
            }
          >
            {run.name}
          </Badge>
        ))}
      </Group>
      <Curves project={project} runs={runs} />
      <Settings project={project} runs={runs} />
    </Stack>
  );
}

function Curves({ project, runs }: { project: string; runs: RunDetail[] }) {
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
  const [chosen, setChosen] = useState<string[]>();
  const shown =
    chosen ?? names.filter((name) => ["loss", "pair_accuracy", "tokens_per_second"].includes(name));
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
          onChange={setChosen}
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
            lines={runs.flatMap((run, at) => {
              const series = queries[at]?.data?.find((one) => one.name === name);
              return series
                ? [
                    {
                      label: run.name,
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
      <Chart lines={lines} x="step" y={name} height={260} />
    </Card>
  );
}

function Settings({ project, runs }: { project: string; runs: RunDetail[] }) {
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
          Settings and results
        </Title>
        <Switch
          label="Also what is equal"
          checked={all}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
      </Group>
      <Table.ScrollContainer minWidth={480}>
        <Table aria-label="Settings and results of the runs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{""}</Table.Th>
              {runs.map((run) => (
                <Table.Th key={run.id}>
                  <Link to="/p/$project/runs/$run" params={{ project, run: run.id }}>
                    {run.name}
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
            {rows.map((row) => (
              <Table.Tr key={row.name}>
                <Table.Th scope="row">{row.name}</Table.Th>
                {row.values.map((value, at) => (
                  <Table.Td key={at}>
                    <Code color={row.differs ? "yellow.1" : undefined} c={row.differs ? "dark.9" : undefined}>
                      {value}
                    </Code>
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
            {results.map((name) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name.replaceAll("_", " ")}</Table.Th>
                {runs.map((run) => {
                  const value = run.summary?.[name];
                  return <Table.Td key={run.id}>{typeof value === "number" ? short(value) : "–"}</Table.Td>;
                })}
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
  const [chosen, setChosen] = useState<string[]>();
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
          onChange={setChosen}
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
          reports[at]?.data ? [{ title: name, rows: reports[at].data.methods }] : [],
        )}
      />
    </section>
  );
}
