import { Card, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { CorrelationTable } from "../../../shared/report/CorrelationTable";
import { Facts } from "../../../shared/Facts";
import { Histogram } from "../../../shared/charts/Histogram";
import { count, percent, signed, counted } from "../../../shared/format/format";
import { type Column, DataTable } from "../../../shared/tables/DataTable";

type Result = Schemas["CombinationResult"];
type Reward = Result["rewards"][number];

const COLUMNS: Column<Reward>[] = [
  { title: "Reward", cell: (one) => one.reward_source },
  { title: "Weight", right: true, cell: (one) => one.weight },
  { title: "Mean, raw", right: true, cell: (one) => signed(one.mean, 3) },
  { title: "sd, raw", right: true, cell: (one) => signed(one.sd, 3) },
  { title: "n", right: true, cell: (one) => count(one.n) },
  { title: "Share of the variance", right: true, cell: (one) => percent(one.share) },
];

const bins = (found: Result["histogram"]) => found.map(({ low, high, n }) => ({ low, high, count: n }));

/** Several rewards of the same answers that became one: how each was normalised, and how they go together. */
export function CombinationBody({ result }: { result: Result }) {
  return (
    <Stack gap="lg">
      <Facts
        facts={[
          ["Rows", count(result.rows), `each with ${counted(result.rewards.length, "reward")}`],
          ["Mean of the sums", signed(result.mean)],
          ["sd of the sums", signed(result.sd)],
        ]}
      />
      <div>
        <Title order={3} size="h6">
          Rewards
        </Title>
        <Text size="sm" c="dimmed" mb="xs">
          Each as z = (reward − mean) / sd over its labelled dataset, times its weight. The shares add up to
          100%; a reward that the others outweigh has a negative one.
        </Text>
        <DataTable
          label="Rewards"
          rows={result.rewards}
          columns={COLUMNS}
          keyOf={(one) => one.dataset}
          minWidth={520}
        />
      </div>
      <div>
        <Title order={3} size="h6">
          Correlation of the rewards
        </Title>
        <CorrelationTable of={result.correlations} />
      </div>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {result.rewards.map((one) => (
          <Card withBorder p="xs" key={one.dataset}>
            <Histogram bins={bins(one.histogram)} x={`${one.reward_source} (z)`} height={150} />
          </Card>
        ))}
        <Card withBorder p="xs">
          <Histogram bins={bins(result.histogram)} x="sum" height={150} />
        </Card>
      </SimpleGrid>
    </Stack>
  );
}
