import { Card, Group, Select, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import { BenchmarksTable } from "../Benchmarks";
import { Chart } from "../../charts/Chart";
import { percent, counted } from "../../format/format";
import { Histogram } from "../../charts/Histogram";
import { useProject } from "../../links";
import { ComparisonView } from "../comparison/ComparisonView";
import { asPercent, Figure, type Report } from "../Figure";
import { LengthHeatMap } from "./LengthHeatMap";
import { Facts } from "../../Facts";
import { Section, Warnings } from "./Section";
import { RewardCurves } from "./SeveralRewards";

type Reward = Report["rewards"][number];

/** One reward model: its results, and how far to trust them. */
export function RewardSection({
  reward,
  headline,
  opened,
}: {
  reward: Reward;
  headline?: string;
  opened?: boolean;
}) {
  return (
    <Section
      title={reward.reward_model}
      headline={headline}
      opened={opened}
      badge={{ text: reward.state, color: "gray" }}
      about={
        reward.trained.length
          ? `Its rewards trained ${reward.trained.join(", ")}, so it does not judge them independently.`
          : "Trained none of the entrants."
      }
    >
      <Warnings warnings={reward.warnings} />
      <Facts
        facts={[
          [
            "Held-out pair accuracy",
            <Figure key="accuracy" of={reward.accuracy} format={asPercent} stacked={false} />,
          ],
          [
            "Calibration error",
            percent(reward.calibration?.expected_error),
            "expected, of pair probabilities",
          ],
        ]}
      />
      <ComparisonView
        comparison={reward.comparison}
        source={`reward:${reward.reward_model}`}
        score={reward.units === "z" ? "Mean reward, z" : "Mean reward, raw"}
      />
      <RewardCurves curves={reward.curves ?? []} of={reward.reward_model} units={reward.units ?? "raw"} />
      {!!reward.benchmarks?.length && <Benchmarks reward={reward} />}
      <Histograms reward={reward} />
      {reward.best_of_n.length > 0 && <BestOfN rows={reward.best_of_n} />}
      {reward.length_correlation.length > 0 && <LengthHeatMap cells={reward.length_correlation} />}
    </Section>
  );
}

function Benchmarks({ reward }: { reward: Reward }) {
  const project = useProject();
  return (
    <div>
      <Title order={4} size="h6">
        Benchmarks
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        The newest of this model on each dataset of pairs: how often the chosen answer has the higher reward.
      </Text>
      <BenchmarksTable
        project={project}
        benchmarks={reward.benchmarks ?? []}
        label={`Benchmarks of ${reward.reward_model}`}
      />
    </div>
  );
}

function Histograms({ reward }: { reward: Reward }) {
  const raw = reward.histogram_raw;
  const z = reward.histogram_z;
  const names = Object.keys(raw);
  const [name, setName] = useState(names[0] ?? null);
  if (!name || !raw[name]?.length) return null;
  const bins = (found: Reward["histogram_raw"][string]) =>
    found.map((bin) => ({ low: bin.low, high: bin.high, count: bin.n }));
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={4} size="h6">
          Rewards
        </Title>
        <Select
          size="xs"
          aria-label="Entrant of the histogram"
          data={names}
          value={name}
          allowDeselect={false}
          onChange={setName}
        />
      </Group>
      <SimpleGrid cols={{ base: 1, md: z[name]?.length ? 2 : 1 }}>
        <Histogram bins={bins(raw[name])} x="raw reward" height={150} />
        {z[name]?.length ? <Histogram bins={bins(z[name])} x="normalised reward (z)" height={150} /> : null}
      </SimpleGrid>
    </Stack>
  );
}

function BestOfN({ rows }: { rows: Reward["best_of_n"] }) {
  const lines = useMemo(
    () =>
      rows.map((row) => ({
        label: row.entrant,
        points: row.n.map((n, at) => ({ x: n, y: row.reward[at]?.value ?? null })),
        band: row.reward.every((one) => one.low != null && one.high != null)
          ? row.reward.map((one) => ({ low: one.low!, high: one.high! }))
          : undefined,
      })),
    [rows],
  );
  return (
    <div>
      <Title order={4} size="h6">
        Best of n
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        The mean over {counted(rows[0]?.reward[0]?.n, "prompt")} of the expected best reward of n answers.
      </Text>
      <Card withBorder p="xs" maw={640}>
        <Chart lines={lines} x="n" y="reward of the best" height={220} marks />
      </Card>
    </div>
  );
}
