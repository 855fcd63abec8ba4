import { Alert, Card, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import type { Schemas } from "../api/client";
import { Chart } from "./Chart";
import { Examples } from "./Examples";
import { count, percent, signed } from "./format";
import { MethodsTable } from "./MethodsTable";

export type Report = Schemas["Report"];

/** An evaluation's report: how far to trust it, every method on one scale, and what they wrote. */
export function ReportBody({ report }: { report: Report }) {
  return (
    <Stack gap="xl">
      {report.synthetic && (
        <Alert color="yellow" variant="light" title="Synthetic data">
          These figures come from texts that a script of Steerboard writes. They show that the methods work,
          never how good they are on real text.
        </Alert>
      )}
      <Figures report={report} />
      <div>
        <Title order={2} size="h4" mb={4}>
          Methods
        </Title>
        <Text size="sm" c="dimmed" mb="sm">
          Mean reward of answers to {count(report.prompts)} held-out prompts in z units of the labelled data;
          the bar is the 95% bootstrap interval over prompts.
        </Text>
        <MethodsTable groups={[{ rows: report.methods }]} />
      </div>
      {report.control && <ControlCurve control={report.control} />}
      <Examples examples={report.examples ?? []} />
      <Warnings warnings={report.warnings ?? []} />
    </Stack>
  );
}

function Figures({ report }: { report: Report }) {
  const { reward_model: model, labelled_rewards: labelled, control } = report;
  const figures: [string, string, string][] = [
    ["Reward model", percent(model.held_out_accuracy), `right on ${count(model.pairs)} held-out pairs`],
    [
      "Independent reward model",
      percent(model.independent_held_out_accuracy),
      "trained on the other half of the prompts",
    ],
    [
      "Labelled rewards",
      labelled ? `${signed(labelled.p20)} / ${signed(labelled.p50)} / ${signed(labelled.p80)}` : "–",
      "20th, 50th and 80th percentile, z",
    ],
    [
      "Control",
      control?.spearman == null ? "–" : signed(control.spearman),
      "Spearman of requested and achieved reward",
    ],
  ];
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>
      {figures.map(([name, value, about]) => (
        <Card withBorder key={name} p="sm">
          <Text size="sm" c="dimmed">
            {name}
          </Text>
          <Text size="xl" fw={650}>
            {value}
          </Text>
          <Text size="xs" c="dimmed">
            {about}
          </Text>
        </Card>
      ))}
    </SimpleGrid>
  );
}

function ControlCurve({ control }: { control: NonNullable<Report["control"]> }) {
  const lines = useMemo(() => {
    const pairs = control.requested
      .map((x, at) => ({ x, y: control.achieved[at] ?? null }))
      .sort((a, b) => a.x - b.x);
    return [{ label: "achieved", points: pairs }];
  }, [control]);
  return (
    <div>
      <Title order={2} size="h4" mb={4}>
        Requested against achieved
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        What the model was asked for in its prompt, and the mean reward of what it then wrote.
      </Text>
      <Card withBorder p="sm" maw={720}>
        <Chart lines={lines} x="requested score" y="achieved reward (z)" height={260} marks />
      </Card>
    </div>
  );
}

function Warnings({ warnings }: { warnings: string[] }) {
  if (!warnings.length) return null;
  return (
    <Alert color="orange" variant="light" title="Read this with the figures">
      <Stack gap={4}>
        {warnings.map((warning) => (
          <Group key={warning} gap="xs">
            <Text size="sm">{warning}</Text>
          </Group>
        ))}
      </Stack>
    </Alert>
  );
}
