import { Card, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { Chart } from "../../charts/Chart";
import type { Line } from "../../charts/line";
import { CorrelationTable } from "../CorrelationTable";
import { titleOf } from "../../forms/condition";
import { signed } from "../../format/format";
import { ComparisonView } from "../comparison/ComparisonView";
import type { Report } from "../Figure";
import { Section } from "./Section";

type Curve = NonNullable<Report["rewards"][number]["curves"]>[number];
type Sum = NonNullable<Report["reward_sums"]>[number];

/** How one reward follows what models are asked for. */
export function RewardCurves({ curves, of, units }: { curves: Curve[]; of: string; units: "z" | "raw" }) {
  if (!curves.length) return null;
  return (
    <div>
      <Title order={4} size="h6">
        Requested against achieved
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        What was requested from a model, and its mean reward with the 95% interval.
      </Text>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {curves.map((curve) => (
          <CurveCard key={labelOf(curve)} curve={curve} of={of} units={units} />
        ))}
      </SimpleGrid>
    </div>
  );
}

function labelOf({ model, guidance = 1 }: Curve): string {
  return guidance === 1 ? model : `${model}, guidance ${guidance}`;
}

function CurveCard({ curve, of, units }: { curve: Curve; of: string; units: "z" | "raw" }) {
  const lines = useMemo<Line[]>(() => {
    const banded = curve.points.every(({ achieved }) => achieved.low != null && achieved.high != null);
    return [
      {
        label: `${of} of ${labelOf(curve)}`,
        points: curve.points.map(({ requested, achieved }) => ({ x: requested, y: achieved.value })),
        band: banded
          ? curve.points.map(({ achieved }) => ({ low: achieved.low!, high: achieved.high! }))
          : undefined,
      },
    ];
  }, [curve, of]);
  return (
    <Card withBorder p="xs">
      <Text size="sm" fw={600}>
        {labelOf(curve)}
        {curve.spearman != null && (
          <Text span size="sm" c="dimmed" fw={400}>
            {" "}
            Spearman {signed(curve.spearman)}
          </Text>
        )}
      </Text>
      <Chart
        lines={lines}
        x={`requested ${titleOf(curve.attribute)}`}
        y={`mean reward (${units})`}
        height={200}
        marks
      />
    </Card>
  );
}

/** A sum of rewards that entrants learned from. */
export function RewardSumSection({ sum }: { sum: Sum }) {
  const parts = sum.parts.map((part) => `${part.weight} × ${part.reward_source}`).join(" + ");
  return (
    <Section
      title={`Sum: ${sum.name}`}
      headline={sum.comparison.why}
      about={`${parts.replaceAll("+ -", "− ")}, each as z-scores of its labelled data; ${sum.trained.join(", ")} learned from it, so it does not judge them independently.`}
    >
      <Stack>
        <ComparisonView comparison={sum.comparison} score="Mean sum, z" />
        <RewardCurves curves={sum.curves} of={sum.name} units="z" />
      </Stack>
    </Section>
  );
}

/** How the reward models of an evaluation go together. */
export function RewardCorrelations({ report }: { report: Report }) {
  if (!report.reward_correlations) return null;
  return (
    <Section title="Correlation of the reward models">
      <CorrelationTable of={report.reward_correlations} />
    </Section>
  );
}
