import {
  Anchor,
  Button,
  Card,
  Center,
  Group,
  Paper,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Table,
  Text,
  Title,
} from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { api, data, type Schemas } from "../../api/client";
import { datasetQuery, samplesQuery } from "../../api/data";
import { Empty, Loaded } from "../../shared/Feedback";
import { count, signed } from "../../shared/format";
import { Histogram } from "../../shared/Histogram";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";

const route = getRouteApi("/p/$project/datasets/$dataset");
type Dataset = Schemas["DatasetOut"];

interface Message {
  role: string;
  content: string;
}

export function DatasetPage() {
  const { project, dataset } = route.useParams();
  const query = useQuery(datasetQuery(project, dataset));
  return <Loaded query={query}>{(found) => <DatasetView project={project} dataset={found} />}</Loaded>;
}

function DatasetView({ project, dataset }: { project: string; dataset: Dataset }) {
  const exported = (format: string) =>
    `/api/v1/projects/${project}/datasets/${dataset.id}/export?format=${format}`;
  return (
    <Page
      title={dataset.name}
      about={
        <>
          {count(dataset.rows)} {dataset.kind}, {count(dataset.held_out_rows)} held out; created{" "}
          <When at={dataset.created_at} />
          {dataset.run_id && (
            <>
              {" "}
              by{" "}
              <Link
                underline="always"
                size="sm"
                to="/p/$project/runs/$run"
                params={{ project, run: dataset.run_id }}
              >
                its run
              </Link>
            </>
          )}
        </>
      }
      actions={
        <>
          <Anchor href={exported("jsonl")} download>
            jsonl
          </Anchor>
          <Anchor href={exported("parquet")} download>
            parquet
          </Anchor>
        </>
      }
    >
      <Statistics project={project} dataset={dataset} />
      <Samples project={project} dataset={dataset} />
    </Page>
  );
}

function Statistics({ project, dataset }: { project: string; dataset: Dataset }) {
  const source = dataset.reward_source;
  const histogram = useQuery({
    queryKey: [project, "dataset", dataset.name, "histogram", source],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/rewards/{source}/histogram", {
          params: { path: { project, dataset: dataset.id, source: source! }, query: { bins: 60 } },
        }),
      ),
    enabled: !!source,
    retry: false,
  });
  const spreads: [string, Dataset["prompt_characters"]][] = [
    ["Prompt length", dataset.prompt_characters],
    ["Response length", dataset.response_characters],
  ];
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Card withBorder>
        <Table aria-label="Statistics">
          <Table.Tbody>
            {spreads.map(
              ([name, spread]) =>
                spread && (
                  <Table.Tr key={name}>
                    <Table.Th scope="row">{name}</Table.Th>
                    <Table.Td>
                      {Object.entries(spread)
                        .map(([key, value]) => `${key} ${count(Math.round(Number(value)))}`)
                        .join(", ")}{" "}
                      characters
                    </Table.Td>
                  </Table.Tr>
                ),
            )}
            {dataset.normaliser && (
              <Table.Tr>
                <Table.Th scope="row">Rewards</Table.Th>
                <Table.Td>
                  mean {signed(dataset.normaliser.mean)}, sd {signed(dataset.normaliser.sd)} over{" "}
                  {count(dataset.normaliser.n)} rows, from {source}
                </Table.Td>
              </Table.Tr>
            )}
            <Table.Tr>
              <Table.Th scope="row">Origin</Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>
                {Object.entries(dataset.origin)
                  .filter(([, value]) => typeof value !== "object")
                  .map(([key, value]) => `${key} ${String(value)}`)
                  .join(", ")}
              </Table.Td>
            </Table.Tr>
          </Table.Tbody>
        </Table>
      </Card>
      {histogram.data && (
        <Card withBorder>
          <Title order={2} size="h6">
            Rewards
          </Title>
          <Histogram bins={histogram.data.bins} x="raw reward" />
        </Card>
      )}
    </SimpleGrid>
  );
}

function Samples({ project, dataset }: { project: string; dataset: Dataset }) {
  const { split } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useInfiniteQuery(samplesQuery(project, dataset.name, split));
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          Samples
        </Title>
        <SegmentedControl
          aria-label="Split"
          value={split ?? "all"}
          onChange={(value) =>
            void navigate({
              search: { split: value === "all" ? undefined : (value as "train" | "held_out") },
            })
          }
          data={[
            { value: "all", label: "All" },
            { value: "train", label: "Train" },
            { value: "held_out", label: "Held out" },
          ]}
        />
      </Group>
      <Loaded query={query}>
        {(found) => {
          const items = found.pages.flatMap((page) => page.items) as Record<string, unknown>[];
          if (!items.length) return <Empty title="No rows in this split" />;
          return (
            <Stack gap="sm">
              {items.map((sample) => (
                <Sample key={Number(sample.row)} sample={sample} />
              ))}
              {query.hasNextPage && (
                <Center>
                  <Button
                    variant="default"
                    loading={query.isFetchingNextPage}
                    onClick={() => void query.fetchNextPage()}
                  >
                    Show more
                  </Button>
                </Center>
              )}
            </Stack>
          );
        }}
      </Loaded>
    </section>
  );
}

function Sample({ sample }: { sample: Record<string, unknown> }) {
  const inner = (typeof sample.sample === "object" && sample.sample ? sample.sample : sample) as Record<
    string,
    unknown
  >;
  const prompt = (inner.prompt ?? []) as Message[];
  const sides = ["chosen", "rejected", "response", "reference"].filter(
    (side) => typeof inner[side] === "string",
  );
  const facts = [`row ${String(sample.row)}`, sample.split, inner.source].filter(Boolean).map(String);
  return (
    <Card withBorder p="md">
      <Group justify="space-between" mb={6}>
        <Text size="xs" c="dimmed">
          {facts.join(" · ").replace("held_out", "held out")}
        </Text>
        {typeof inner.reward === "number" && (
          <Text size="sm" fw={600}>
            reward {signed(inner.reward)}
          </Text>
        )}
      </Group>
      <Stack gap={6}>
        {prompt.map((message, at) => (
          <Turn key={at} role={message.role} text={message.content} />
        ))}
      </Stack>
      <SimpleGrid cols={{ base: 1, sm: sides.length > 1 ? 2 : 1 }} mt={8} spacing="sm">
        {sides.map((side) => (
          <Paper key={side} withBorder p="sm" bg="var(--mantine-color-default-hover)">
            <Text size="xs" c="dimmed">
              {side}
            </Text>
            <pre className="text">{String(inner[side])}</pre>
          </Paper>
        ))}
      </SimpleGrid>
    </Card>
  );
}

function Turn({ role, text }: { role: string; text: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {role}
      </Text>
      <pre className="text">{text}</pre>
    </div>
  );
}
