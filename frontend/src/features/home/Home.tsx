import type { Schemas } from "../../api/client";
import { pipelinesQuery } from "../../api/runs/pipelines";
import { queueQuery, queuesQuery, workersQuery } from "../../api/runs/queue";
import { type Run, runsQuery } from "../../api/runs/runs";
import { useMay } from "../../api/accounts/session";
import { Badge, Card, Code, Group, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Loaded } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { runName } from "../../shared/format/runName";
import { Link, LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";
import { PipelinesTable } from "../../shared/tables/PipelinesTable";
import { RunsTable } from "../../shared/tables/RunsTable";
import { When } from "../../shared/When";
import { FirstSteps } from "./FirstSteps";
import { Waiting } from "./Waiting";

const route = getRouteApi("/p/$project/");

export function Home() {
  const { project } = route.useParams();
  const pipelines = useQuery(pipelinesQuery(project));
  const fresh = pipelines.data?.items.length === 0;
  return (
    <Page
      title="Home"
      tab={project}
      about={`Running, waiting and failed work in the project ${project}, and the workers.`}
    >
      <FirstSteps project={project} />
      <Waiting project={project} />
      <Active project={project} />
      <Machines project={project} />
      <Failed project={project} />
      {!fresh && <Latest project={project} />}
    </Page>
  );
}

function Latest({ project }: { project: string }) {
  const pipelines = useQuery(pipelinesQuery(project));
  const mayRun = useMay(project, "run");
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4">
          Latest pipelines
        </Title>
        {mayRun && (
          <LinkButton component="a" size="xs" to="/p/$project/launch" params={{ project }} search={{}}>
            Launch
          </LinkButton>
        )}
      </Group>
      <Loaded query={pipelines} rows={3}>
        {(page) => <PipelinesTable project={project} items={page.items.slice(0, 5)} />}
      </Loaded>
    </section>
  );
}

/** Running runs, then paused ones, then queued ones in the order in which they will run. */
function Active({ project }: { project: string }) {
  const query = useInfiniteQuery(runsQuery(project, { state: ["running", "paused", "queued"] }));
  const pending = useInfiniteQuery(runsQuery(project, { state: ["pending"] }));
  const waiting = pending.data?.pages[0]?.items ?? [];
  // An evaluation is pending while its answers are made, and has progress then.
  const begun = waiting.filter((run) => run.progress);
  const runs = [...begun, ...(query.data?.pages[0]?.items ?? [])];
  const places = usePlaces(runs);
  const order = (run: Run) =>
    ["pending", "running", "paused"].indexOf(run.state) + 1 ||
    3 + (places.get(run.id)?.at ?? Number.MAX_SAFE_INTEGER);
  const items = runs.slice().sort((a, b) => order(a) - order(b));
  const later = waiting.length - begun.length;
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4">
          Running and waiting
        </Title>
        {items.length > 0 && (
          <Link to="/p/$project/queue" params={{ project }} size="sm">
            Full queue
          </Link>
        )}
      </Group>
      <Loaded query={query} rows={3}>
        {() =>
          items.length ? (
            <RunsTable
              runs={items.slice(0, 8)}
              label="Running and waiting"
              places={new Map([...places].map(([run, place]) => [run, `${place.at} of ${place.of}`]))}
            />
          ) : (
            <Text size="sm" c="dimmed">
              Nothing is running, paused or queued.
            </Text>
          )
        }
      </Loaded>
      {later > 0 && (
        <Link to="/p/$project/runs" params={{ project }} search={{ state: ["pending"] }} size="sm">
          {pending.hasNextPage ? `More than ${later}` : later} not queued yet: what they need has not been
          made
        </Link>
      )}
    </section>
  );
}

/** The place of each queued run in the queue of its pool. */
function usePlaces(runs: Run[]): Map<string, { at: number; of: number }> {
  const pools = [...new Set(runs.filter((run) => run.state === "queued").map((run) => run.pool))];
  const queues = useQueries({ queries: pools.map((pool) => queueQuery(pool)) });
  return new Map(
    queues.flatMap(({ data }) =>
      (data?.runs ?? []).map((run): [string, { at: number; of: number }] => [
        run.id,
        { at: run.position, of: data!.queued },
      ]),
    ),
  );
}

function Failed({ project }: { project: string }) {
  const query = useInfiniteQuery(runsQuery(project, { state: ["failed"] }));
  const items = query.data?.pages[0]?.items ?? [];
  if (!items.length) return null;
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4">
          Failed
        </Title>
        <Link to="/p/$project/runs" params={{ project }} search={{ state: ["failed"] }} size="sm">
          All failed runs
        </Link>
      </Group>
      <RunsTable runs={items.slice(0, 5)} label="Failed" />
    </section>
  );
}

type Worker = Schemas["WorkerOut"];

function WorkerLine({ project, worker }: { project: string; worker: Worker }) {
  const ids = (worker.devices.ids ?? []) as string[];
  const devices = ids.length ? `${ids.length === 1 ? "GPU" : "GPUs"} ${ids.join(", ")}` : "CPU";
  return (
    <Group justify="space-between" wrap="nowrap" align="flex-start">
      <div style={{ minWidth: 0 }}>
        <Text size="sm" fw={550} truncate>
          {worker.name}
        </Text>
        <Text size="xs" c="dimmed" component="div">
          pool {worker.pool}, {devices}, heartbeat <When at={worker.heartbeat_at} />
        </Text>
        {worker.holds.length > 0 && (
          <Text size="xs" c="dimmed">
            holds {worker.holds.join(", ")}
          </Text>
        )}
      </div>
      {worker.run ? (
        <Link
          size="sm"
          to="/p/$project/runs/$run"
          params={{ project: worker.run.project, run: worker.run.id }}
          style={{ whiteSpace: "nowrap" }}
        >
          {runName(worker.run)}
          {worker.run.project === project ? "" : ` in ${worker.run.project}`}
        </Link>
      ) : (
        <Badge color="gray" miw="max-content">
          {worker.busy ? "busy" : "idle"}
        </Badge>
      )}
    </Group>
  );
}

function Machines({ project }: { project: string }) {
  const workers = useQuery(workersQuery);
  const queues = useQuery(queuesQuery);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Card withBorder>
        <Title order={2} size="h6" mb="xs">
          Workers
        </Title>
        <Loaded query={workers} rows={2}>
          {(found) => {
            const alive = found.filter((worker) => worker.alive);
            if (!alive.length)
              return (
                <Text size="sm">
                  No worker is running, so queued runs wait. Start one with <Code>steerboard worker</Code>.
                </Text>
              );
            return (
              <Stack gap={6}>
                {alive.map((worker) => (
                  <WorkerLine key={worker.id} project={project} worker={worker} />
                ))}
              </Stack>
            );
          }}
        </Loaded>
      </Card>
      <Card withBorder>
        <Title order={2} size="h6" mb="xs">
          Queues
        </Title>
        <Loaded query={queues} rows={2}>
          {(found) =>
            found.length ? (
              <Table aria-label="Queues" horizontalSpacing={6}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Pool</Table.Th>
                    <Table.Th ta="right">Running</Table.Th>
                    <Table.Th ta="right">Queued</Table.Th>
                    <Table.Th ta="right">Pending</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {found.map((queue) => (
                    <Table.Tr key={queue.pool}>
                      <Table.Td style={{ overflowWrap: "anywhere" }}>
                        {queue.pool}
                        {!queue.workers && queue.queued > 0 && (
                          <Badge ml="xs" color="orange" className="state-badge">
                            no worker
                          </Badge>
                        )}
                      </Table.Td>
                      <Table.Td ta="right">{count(queue.running)}</Table.Td>
                      <Table.Td ta="right">{count(queue.queued)}</Table.Td>
                      <Table.Td ta="right">{count(queue.pending)}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            ) : (
              <Text size="sm" c="dimmed">
                Nothing waiting.
              </Text>
            )
          }
        </Loaded>
      </Card>
    </SimpleGrid>
  );
}
