import { Card, SegmentedControl, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { type Statistics, statisticsQuery } from "../../api/datasets/datasets";
import { Chart } from "../../shared/charts/Chart";
import type { Line } from "../../shared/charts/line";
import { Loaded } from "../../shared/Feedback";
import { count, percent, signed } from "../../shared/format/format";
import { Histogram } from "../../shared/charts/Histogram";

/** What a dataset is made of: lengths, sources, repetitions, rewards. */
export function StatisticsView({ project, dataset }: { project: string; dataset: Schemas["DatasetOut"] }) {
  const query = useQuery(statisticsQuery(project, dataset.name));
  return (
    <Loaded query={query}>
      {(found) => (
        <SimpleGrid cols={{ base: 1, lg: 2 }}>
          {found.rewards.map((rewards) => (
            <Rewards key={rewards.source} rewards={rewards} />
          ))}
          {found.reward_by_length && <RewardByLength found={found.reward_by_length} />}
          {found.lengths.map((length) => (
            <Figure
              key={length.field}
              title={`Length: ${length.field}`}
              about={`mean ${count(Math.round(length.mean))}, median ${count(Math.round(length.p50))}, 95% below ${count(Math.round(length.p95))}, longest ${count(length.max)} ${length.unit}`}
            >
              <Histogram bins={length.bins} x={length.unit} />
            </Figure>
          ))}
          <Counts found={found} />
        </SimpleGrid>
      )}
    </Loaded>
  );
}

function Figure({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  return (
    <Card withBorder component="figure" m={0}>
      <Title order={2} size="h6">
        {title}
      </Title>
      {about && (
        <Text size="sm" c="dimmed" mb="xs">
          {about}
        </Text>
      )}
      {children}
    </Card>
  );
}

function Rewards({ rewards }: { rewards: Statistics["rewards"][number] }) {
  const [unit, setUnit] = useState("raw");
  const { figures, normalised } = rewards;
  const raw = unit === "raw";
  return (
    <Figure
      title={`Rewards from ${rewards.source}`}
      about={
        raw
          ? `mean ${signed(figures.mean)}, sd ${signed(figures.sd)}, from ${signed(figures.low)} to ${signed(figures.high)}; 20% below ${signed(figures.p20)}, 80% below ${signed(figures.p80)}`
          : `z = (reward − ${signed(normalised.mean)}) / ${signed(normalised.sd)}: what a policy that takes scores is asked for`
      }
    >
      <Stack gap="xs">
        <SegmentedControl
          size="xs"
          w="max-content"
          aria-label={`Unit of the rewards from ${rewards.source}`}
          value={unit}
          onChange={setUnit}
          data={[
            { value: "raw", label: "Raw" },
            { value: "z", label: "Normalised" },
          ]}
        />
        <Histogram bins={raw ? rewards.bins : normalised.bins} x={raw ? "raw reward" : "reward (z)"} />
      </Stack>
    </Figure>
  );
}

function RewardByLength({ found }: { found: NonNullable<Statistics["reward_by_length"]> }) {
  const lines = useMemo((): Line[] => {
    const filled = found.bins.filter((bin) => bin.n > 0);
    const line = (label: string, pick: (bin: (typeof filled)[number]) => number | null | undefined) => ({
      label,
      points: filled.map((bin) => ({ x: (bin.low + bin.high) / 2, y: pick(bin) ?? null })),
    });
    return [line("mean", (bin) => bin.mean), line("20%", (bin) => bin.p20), line("80%", (bin) => bin.p80)];
  }, [found]);
  return (
    <Figure
      title="Reward against length"
      about="A reward that rises with length may teach the policy to be long rather than good."
    >
      <Chart lines={lines} x={`response, ${found.unit}`} y="raw reward" marks />
    </Figure>
  );
}

function Counts({ found }: { found: Statistics }) {
  const { duplicates } = found;
  const rows: [string, string][] = [
    ["Rows", count(found.rows)],
    ["Held out", `${count(found.held_out_rows)} (${percent(found.held_out_rows / Math.max(1, found.rows))})`],
    ["Turns per prompt", `mean ${found.turns.mean.toFixed(1)}, most ${count(found.turns.max)}`],
    ["Distinct prompts", count(duplicates.distinct_prompts)],
    ["Prompts that occur more than once", count(duplicates.repeated_prompts)],
    ["Rows equal to an earlier one", count(duplicates.repeated_rows)],
  ];
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        Counts
      </Title>
      <Table aria-label="Counts">
        <Table.Tbody>
          {rows.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name}</Table.Th>
              <Table.Td ta="right">{value}</Table.Td>
            </Table.Tr>
          ))}
          {found.sources.map(({ source, rows: of }) => (
            <Table.Tr key={`source ${source}`}>
              <Table.Th scope="row">from {source}</Table.Th>
              <Table.Td ta="right">
                {count(of)} ({percent(of / Math.max(1, found.rows))})
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}
