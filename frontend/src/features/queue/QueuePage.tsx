import { Badge, Code, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { queueQuery, queuesQuery } from "../../api/runs/queue";
import { type Run, runsQuery } from "../../api/runs/runs";
import { useMay } from "../../api/accounts/session";
import { Empty, Loaded } from "../../shared/Feedback";
import { count, counted } from "../../shared/format/format";
import { runName } from "../../shared/format/runName";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { PartOf } from "./PartOf";
import { WaitingRuns } from "./WaitingRuns";

type Queue = Schemas["QueueOut"];

const route = getRouteApi("/p/$project/queue");

export function QueuePage() {
  const { project } = route.useParams();
  const mayRun = useMay(project, "run");
  const queues = useQuery(queuesQuery);
  return (
    <Page
      title="Queue"
      about={
        <>
          Queued runs of each pool, in the order in which its workers will take them: by priority, then by
          position.
          {mayRun &&
            queues.data?.some((queue) => queue.queued > 1) &&
            " Drag a row, use its arrows, or press Alt+↑ and Alt+↓ in it; a run that is moved past another priority takes on that priority."}
        </>
      }
    >
      <Loaded query={queues}>
        {(found) =>
          found.length ? (
            <Stack gap="xl">
              {found.map((queue) => (
                <Pool key={queue.pool} queue={queue} />
              ))}
            </Stack>
          ) : (
            <Empty title="Nothing is queued, and no worker is running">
              A launched run waits here until a worker of its pool takes it. Start one with{" "}
              <Code>steerboard worker</Code>.
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

function Pool({ queue }: { queue: Queue }) {
  const { project } = route.useParams();
  const waiting = useQuery(queueQuery(queue.pool));
  const pending = useInfiniteQuery(runsQuery(project, { state: ["pending"] }));
  const later = (pending.data?.pages ?? [])
    .flatMap((page) => page.items)
    .filter((run) => run.pool === queue.pool)
    // As the stages of a recipe follow each other.
    .reverse();
  return (
    <section aria-label={`Pool ${queue.pool}`}>
      <Group gap="sm" mb="xs">
        <Title order={2} size="h4">
          {queue.pool}
        </Title>
        <Badge
          color={!queue.workers && queue.queued ? "orange" : "gray"}
          className={!queue.workers && queue.queued ? "state-badge" : undefined}
        >
          {counted(queue.workers, "worker")}
        </Badge>
        <Badge color="gray">{count(queue.running)} running</Badge>
        <Badge color="gray">{count(queue.queued)} queued</Badge>
      </Group>
      <Loaded query={waiting} rows={3}>
        {(found) => {
          const unseen = found.queued - found.runs.length;
          return (
            <>
              {!queue.workers && found.queued > 0 && (
                <Text size="sm" mb="xs">
                  No worker of this pool is running, so nothing here starts. Start one with{" "}
                  <Code>steerboard worker --pool {queue.pool}</Code>.
                </Text>
              )}
              {found.runs.length ? (
                <WaitingRuns queue={queue} runs={found.runs} complete={unseen <= 0} />
              ) : (
                <Text size="sm" c="dimmed">
                  {unseen > 0 ? "No run of your projects is queued." : "No run is queued."}
                </Text>
              )}
              {unseen > 0 && (
                <Text size="sm" c="dimmed" mt="xs">
                  {count(unseen)} more {unseen === 1 ? "is" : "are"} waiting here, in other projects or
                  further back.
                </Text>
              )}
            </>
          );
        }}
      </Loaded>
      {later.length > 0 && <Pending project={project} runs={later} pool={queue.pool} />}
    </section>
  );
}

/** Not queued yet: what they need is still being made. */
function Pending({ project, runs, pool }: { project: string; runs: Run[]; pool: string }) {
  return (
    <>
      <Title order={3} size="h6" mt="md" mb={4}>
        Not queued yet
      </Title>
      <Table.ScrollContainer minWidth={340}>
        <Table aria-label={`Runs of pool ${pool} that are not queued yet`}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Run</Table.Th>
              <Table.Th>Part of</Table.Th>
              <Table.Th visibleFrom="sm">Waiting since</Table.Th>
              <Table.Th>Reason</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {runs.map((run) => (
              <Table.Tr key={run.id}>
                <Table.Td>
                  <Link to="/p/$project/runs/$run" params={{ project, run: run.id }} size="sm" fw={550}>
                    {runName(run)}
                  </Link>
                </Table.Td>
                <Table.Td>
                  <PartOf project={project} pipeline={run.pipeline_id} />
                </Table.Td>
                <Table.Td visibleFrom="sm">
                  <When at={run.created_at} />
                </Table.Td>
                <Table.Td>{run.reason || "its inputs are not ready yet"}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  );
}
