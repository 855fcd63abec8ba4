import {
  Alert,
  Anchor,
  Card,
  Code,
  Grid,
  Group,
  SimpleGrid,
  Stack,
  Table,
  Tabs,
  Text,
  Title,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { runQuery, type RunDetail } from "../../api/runs";
import { useNow } from "../../shared/clock";
import { Loaded } from "../../shared/Feedback";
import { between, count, seconds, short } from "../../shared/format";
import { Link, useProject } from "../../shared/links";
import { Page } from "../../shared/Page";
import { RunProgress } from "../../shared/Progress";
import { StateBadge } from "../../shared/StateBadge";
import { RunActions } from "./RunActions";
import { RunCharts } from "./RunCharts";
import { RunLogs } from "./RunLogs";
import { RunsTable } from "../../shared/RunsTable";
import { Timeline } from "./Timeline";

const route = getRouteApi("/p/$project/runs/$run");
export const ENDED = ["succeeded", "failed", "cancelled"];

export function RunPage() {
  const { project, run } = route.useParams();
  const query = useQuery(runQuery(project, run));
  return <Loaded query={query}>{(data) => <RunView run={data} />}</Loaded>;
}

function RunView({ run }: { run: RunDetail }) {
  const project = useProject();
  const live = !ENDED.includes(run.state);
  const bad = run.state === "failed";
  return (
    <Page
      title={run.name}
      beside={<StateBadge state={run.state} />}
      about={
        <>
          {run.method ?? run.kind} in pool {run.pool}, started by {run.created_by}
          {run.pipeline_id && (
            <>
              , part of{" "}
              <Link
                underline="always"
                to="/p/$project/pipelines/$pipeline"
                params={{ project, pipeline: run.pipeline_id }}
                size="sm"
              >
                its pipeline
              </Link>
            </>
          )}
        </>
      }
      actions={<RunActions run={run} />}
    >
      {run.reason && run.state !== "succeeded" && (
        <Alert
          color={bad ? "red" : "gray"}
          variant="light"
          title={bad ? `Failed: ${run.reason_code ?? "unknown"}` : undefined}
        >
          <pre className="text">{run.reason}</pre>
          {typeof run.error?.hint === "string" && (
            <Text size="sm" mt="xs">
              {run.error.hint}
            </Text>
          )}
        </Alert>
      )}
      <RunProgress run={run} />
      <Figures run={run} />
      <Tabs defaultValue="charts" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="charts">Charts</Tabs.Tab>
          <Tabs.Tab value="log">Log</Tabs.Tab>
          <Tabs.Tab value="life">Timeline</Tabs.Tab>
          <Tabs.Tab value="config">Config</Tabs.Tab>
          {run.shards.length > 0 && <Tabs.Tab value="shards">Shards</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="charts" pt="md">
          <RunCharts run={run.id} live={live} />
        </Tabs.Panel>
        <Tabs.Panel value="log" pt="md">
          <RunLogs run={run.id} live={live} />
        </Tabs.Panel>
        <Tabs.Panel value="life" pt="md">
          <Timeline run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="config" pt="md">
          <Config run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="shards" pt="md">
          <RunsTable runs={run.shards} label={`Shards of ${run.name}`} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Figures({ run }: { run: RunDetail }) {
  const now = useNow();
  const figures = Object.entries(run.summary ?? {}).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number",
  );
  const taken = seconds(between(run.started_at, run.ended_at, now));
  const cards: [string, string][] = [
    ["Took", taken],
    ["Device time", run.reused_from_id ? "reused" : seconds(run.device_seconds)],
    ["Attempt", `${run.attempt} of ${run.max_attempts}`],
    ...figures
      .slice(0, 9)
      .map(([name, value]): [string, string] => [
        name.replaceAll("_", " "),
        Number.isInteger(value) ? count(value) : short(value),
      ]),
  ];
  return (
    <Grid>
      <Grid.Col span={{ base: 12, md: 8 }}>
        <SimpleGrid cols={{ base: 2, xs: 3, lg: 6 }} spacing="sm">
          {cards.map(([name, value]) => (
            <Card withBorder p="xs" key={name}>
              <Text size="xs" c="dimmed" truncate title={name}>
                {name}
              </Text>
              <Text fw={600}>{value}</Text>
            </Card>
          ))}
        </SimpleGrid>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Things run={run} />
      </Grid.Col>
    </Grid>
  );
}

function Things({ run }: { run: RunDetail }) {
  return (
    <Stack gap={4}>
      <Title order={2} size="h6">
        Inputs
      </Title>
      {run.inputs.map((input) => (
        <Group gap="xs" key={input.name} wrap="nowrap">
          <Text size="sm" c="dimmed" w={90} truncate>
            {input.name}
          </Text>
          <Thing type={input.type} id={input.id} label={input.label} />
        </Group>
      ))}
      {!run.inputs.length && (
        <Text size="sm" c="dimmed">
          none
        </Text>
      )}
      <Title order={2} size="h6" mt="xs">
        Outputs
      </Title>
      {run.outputs.map((output) => (
        <Group gap="xs" key={output.name} wrap="nowrap">
          <Text size="sm" c="dimmed" w={90} truncate>
            {output.name}
          </Text>
          <Thing type={output.type} id={output.id} label={output.label ?? output.type} />
        </Group>
      ))}
      {!run.outputs.length && (
        <Text size="sm" c="dimmed">
          {ENDED.includes(run.state) ? "none" : "none yet"}
        </Text>
      )}
    </Stack>
  );
}

function Thing({ type, id, label }: { type: string; id: string | null; label: string }) {
  const project = useProject();
  if (!id) return <Text size="sm">{label}</Text>;
  if (type === "model")
    return (
      <Link size="sm" to="/p/$project/models/$model" params={{ project, model: id }}>
        {label}
      </Link>
    );
  if (type === "run")
    return (
      <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: id }}>
        {label}
      </Link>
    );
  if (["dataset", "rewards", "labelled"].includes(type))
    return (
      <Link size="sm" to="/p/$project/datasets/$dataset" params={{ project, dataset: id }}>
        {label}
      </Link>
    );
  return <Text size="sm">{label}</Text>;
}

function Config({ run }: { run: RunDetail }) {
  const project = useProject();
  return (
    <Stack>
      <Table aria-label="Config" maw={720}>
        <Table.Tbody>
          {Object.entries(run.config).map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" w={240} fw={500}>
                {name}
              </Table.Th>
              <Table.Td>
                <Code>{typeof value === "string" ? value : JSON.stringify(value)}</Code>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {run.reused_from_id && (
        <Text size="sm">
          An equal run had finished before, so its outputs were taken over:{" "}
          <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: run.reused_from_id }}>
            the run that did the work
          </Link>
        </Text>
      )}
      <Anchor size="sm" href={`/api/v1/projects/${project}/runs/${run.id}`}>
        This run as JSON
      </Anchor>
    </Stack>
  );
}
