import { Alert, Card, Group, List, SimpleGrid, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { Chart } from "../charts/Chart";
import { Examples } from "../text/Examples";
import { count, percent, signed } from "../format/format";
import { Link, useProject } from "../links";
import { MethodsTable } from "../tables/MethodsTable";
import { Reservations, SOURCES } from "./Reservations";

export type Report = Schemas["Report"];

/** What a recipe's evaluation found: how far to trust it, every method on one scale, and what they wrote. */
export function ReportBody({ report }: { report: Report }) {
  const project = useProject();
  const evaluation = report.evaluation?.name;
  return (
    <Stack gap="xl">
      {report.synthetic && (
        <Alert color="yellow" variant="light" title="Synthetic data">
          These figures come from texts that a script of Steerboard writes. They show that the methods work,
          never how good they are on real text.
        </Alert>
      )}
      {report.summary && <Summary summary={report.summary} headline={report.headline} />}
      {evaluation && (
        <Text size="sm">
          Ask people or a judge about the same answers in the evaluation{" "}
          <Link underline="always" to="/p/$project/evaluations/$evaluation" params={{ project, evaluation }}>
            {evaluation}
          </Link>
          .
        </Text>
      )}
      {report.methods.length > 0 && (
        <>
          <Figures report={report} />
          <div>
            <Title order={2} size="h4" mb={4}>
              Methods
            </Title>
            <Text size="sm" c="dimmed" mb="sm">
              Mean reward of answers to {count(report.prompts)} held-out prompts,{" "}
              {report.units === "raw" ? "raw" : `in z units of ${report.units_of}`}; the bar is the 95%
              bootstrap interval over prompts.
            </Text>
            <MethodsTable groups={[{ rows: report.methods, baseline: report.baseline }]} />
          </div>
        </>
      )}
      {report.control && <ControlCurve control={report.control} units={report.units} />}
      <Notes report={report} />
    </Stack>
  );
}

/** What a recipe's stage kept beyond the figures, which the evaluation has itself. */
export function Kept({ report }: { report: Report }) {
  return (
    <Stack gap="xl">
      <Checks checks={report.summary?.checks ?? []} />
      <Notes report={report} />
    </Stack>
  );
}

function Notes({ report }: { report: Report }) {
  return (
    <>
      <Training lines={report.training ?? []} />
      <Examples examples={report.examples ?? []} />
      <Warnings warnings={report.warnings ?? []} />
    </>
  );
}

/** The verdict of the evaluation, and what the paper claims: the words that the command line prints too. */
function Summary({
  summary,
  headline,
}: {
  summary: NonNullable<Report["summary"]>;
  headline: Report["headline"];
}) {
  return (
    <Stack gap="sm">
      <Text fw={600} size="lg" style={{ textWrap: "pretty", overflowWrap: "anywhere" }}>
        {summary.verdict}
      </Text>
      {headline?.by && headline.source && (
        <Text size="sm" c="dimmed">
          By {SOURCES[headline.by]} {headline.source}, when the stage ended.
        </Text>
      )}
      <Reservations of={headline?.reservations ?? []} />
      {summary.cost && (
        <Text size="sm" c="dimmed">
          {summary.cost}
        </Text>
      )}
      <Checks checks={summary.checks} />
    </Stack>
  );
}

function Checks({ checks }: { checks: NonNullable<Report["summary"]>["checks"] }) {
  if (!checks.length) return null;
  return (
    <List aria-label="What the paper claims, checked here" spacing={4} size="sm" center>
      {checks.map((check) => (
        <List.Item
          key={check.text}
          icon={
            <ThemeIcon size={20} radius="xl" variant="light" color={check.met ? "teal" : "red"}>
              {check.met ? <IconCheck size={14} aria-hidden /> : <IconX size={14} aria-hidden />}
            </ThemeIcon>
          }
        >
          <Text span size="sm" fw={600}>
            {check.met ? "Met: " : "Not met: "}
          </Text>
          {check.text}
        </List.Item>
      ))}
    </List>
  );
}

function Figures({ report }: { report: Report }) {
  const { reward_model: model, labelled_rewards: labelled, control } = report;
  const figures: [string, string, string][] = [
    ["Reward model", percent(model.held_out_accuracy), `right on ${count(model.pairs)} held-out pairs`],
    [
      "Independent reward model",
      percent(model.independent_held_out_accuracy),
      model.independent_name ? `${model.independent_name}: nothing here learned from it` : "–",
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

function ControlCurve({
  control,
  units,
}: {
  control: NonNullable<Report["control"]>;
  units: Report["units"];
}) {
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
        What was requested in the prompt, and the mean reward of the answers.
      </Text>
      <Card withBorder p="sm" maw={720}>
        <Chart lines={lines} x="requested score" y={`achieved reward (${units})`} height={260} marks />
      </Card>
    </div>
  );
}

/** Which weights each policy has, and whether it uses what it is asked for. */
function Training({ lines }: { lines: string[] }) {
  if (!lines.length) return null;
  return (
    <div>
      <Title order={2} size="h4" mb={4}>
        Training
      </Title>
      <List size="sm">
        {lines.map((line) => (
          <List.Item key={line} style={{ overflowWrap: "anywhere" }}>
            {line}
          </List.Item>
        ))}
      </List>
    </div>
  );
}

function Warnings({ warnings }: { warnings: string[] }) {
  if (!warnings.length) return null;
  return (
    <Alert color="orange" variant="light" title="Caveats">
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
