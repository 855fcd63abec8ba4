import { Badge, Button, Card, Group, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { createLink, getRouteApi } from "@tanstack/react-router";
import { queuesQuery, workersQuery } from "../../api/data";
import { pipelinesQuery, runsQuery, type RunState } from "../../api/runs";
import { useMay } from "../../api/session";
import { Empty, Loaded } from "../../shared/Feedback";
import { count } from "../../shared/format";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { PipelinesTable } from "../../shared/PipelinesTable";
import { RunsTable } from "../../shared/RunsTable";
import { When } from "../../shared/When";

const route = getRouteApi("/p/$project/");
const LinkButton = createLink(Button<"a">);

export function Home() {
  const { project } = route.useParams();
  const pipelines = useQuery(pipelinesQuery(project));
  const mayRun = useMay(project, "run");
  return (
    <Page title={project} about="What runs, what waits, what failed, and who works.">
      <Machines project={project} />
      <SomeRuns
        project={project}
        title="Running and waiting"
        states={["running", "queued"]}
        empty="Nothing runs or waits."
      />
      <SomeRuns project={project} title="Failed" states={["failed"]} empty={null} />
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
          {(page) =>
            page.items.length ? (
              <PipelinesTable project={project} items={page.items.slice(0, 5)} />
            ) : (
              <Empty
                title="Start here"
                action={
                  <LinkButton component="a" to="/p/$project/datasets" params={{ project }}>
                    Import a dataset
                  </LinkButton>
                }
              >
                Import preferences and instructions, then launch the offline-rlhf recipe: it trains and
                compares every method and ends with one table.
              </Empty>
            )
          }
        </Loaded>
      </section>
    </Page>
  );
}

function SomeRuns({
  project,
  title,
  states,
  empty,
}: {
  project: string;
  title: string;
  states: RunState[];
  empty: string | null;
}) {
  const query = useInfiniteQuery(runsQuery(project, { state: states }));
  const items = query.data?.pages[0]?.items ?? [];
  if (!items.length && empty === null) return null;
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4">
          {title}
        </Title>
        <Link to="/p/$project/runs" params={{ project }} search={{ state: states }} size="sm">
          All of them
        </Link>
      </Group>
      <Loaded query={query} rows={3}>
        {() =>
          items.length ? (
            <RunsTable runs={items.slice(0, 8)} label={title} />
          ) : (
            <Text size="sm" c="dimmed">
              {empty}
            </Text>
          )
        }
      </Loaded>
    </section>
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
                  No worker is alive, so what is queued waits. Start one with `steerboard worker`.
                </Text>
              );
            return (
              <Stack gap={6}>
                {alive.map((worker) => (
                  <Group key={worker.id} justify="space-between" wrap="nowrap">
                    <div style={{ minWidth: 0 }}>
                      <Text size="sm" fw={550} truncate>
                        {worker.name}
                      </Text>
                      <Text size="xs" c="dimmed">
                        pool {worker.pool}, heartbeat <When at={worker.heartbeat_at} />
                      </Text>
                    </div>
                    {worker.run_id ? (
                      <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: worker.run_id }}>
                        its run
                      </Link>
                    ) : (
                      <Badge color="gray">idle</Badge>
                    )}
                  </Group>
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
              <Table aria-label="Queues">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Pool</Table.Th>
                    <Table.Th ta="right">Running</Table.Th>
                    <Table.Th ta="right">Queued</Table.Th>
                    <Table.Th ta="right">Waiting for inputs</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {found.map((queue) => (
                    <Table.Tr key={queue.pool}>
                      <Table.Td>{queue.pool}</Table.Td>
                      <Table.Td ta="right">{count(queue.running)}</Table.Td>
                      <Table.Td ta="right">{count(queue.queued)}</Table.Td>
                      <Table.Td ta="right">{count(queue.pending)}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            ) : (
              <Text size="sm" c="dimmed">
                Nothing waits.
              </Text>
            )
          }
        </Loaded>
      </Card>
    </SimpleGrid>
  );
}
