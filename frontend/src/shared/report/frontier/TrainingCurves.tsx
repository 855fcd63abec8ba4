import { Card, Stack, Table, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { modelQuery } from "../../../api/models/models";
import { metricsQuery } from "../../../api/runs/runs";
import { Failure } from "../../Feedback";
import { count } from "../../format/format";
import { useProject } from "../../links";
import { plain, type Report } from "../Figure";
import { type TrainedCurve, TrainingChart } from "./TrainingChart";
import { CURVE_METRICS, modelsOf, trainingCurve } from "./trainingCurve";

/** How the entrants that were trained on their own answers came to their reward and KL; nothing where there are none. */
export function TrainingCurves({ report }: { report: Report }) {
  const project = useProject();
  const models = modelsOf(report);
  const found = useQueries({ queries: models.map((one) => modelQuery(project, one.model)) });
  const trained = models.flatMap(({ entrants }, at) => {
    const run = found[at]?.data?.run_id;
    return run ? [{ run, label: entrants.join(", ") }] : [];
  });
  const metrics = useQueries({
    queries: trained.map((one) => metricsQuery(project, one.run, false, CURVE_METRICS)),
  });
  const curves = trained
    .map((one, at): TrainedCurve => ({ ...one, points: trainingCurve(metrics[at]?.data ?? []) }))
    .filter((one) => one.points.length > 0);
  const error = [...found, ...metrics].find((one) => one.error)?.error;
  if (error) return <Failure error={error} />;
  if (!curves.length) return null;
  const name = "Training curves by step";
  return (
    <Card withBorder>
      <Stack gap="sm">
        <div>
          <Title order={4} size="h6">
            Reward and KL in training
          </Title>
          <Text size="sm" c="dimmed">
            Reward against KL while each of these runs trained, on its own prompts, in its own reward&apos;s
            units and to its own reference: the shape compares with the chart above, the height does not.
            Points of long runs are means over steps.
          </Text>
        </div>
        <TrainingChart curves={curves} />
        <details>
          <Text component="summary" size="sm" style={{ cursor: "pointer" }}>
            The same as a table
          </Text>
          <Table.ScrollContainer
            minWidth={280}
            maxHeight={360}
            scrollAreaProps={{ viewportProps: { tabIndex: 0, role: "group", "aria-label": name } }}
          >
            <Table aria-label={name} stickyHeader>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Entrant</Table.Th>
                  <Table.Th ta="right">Step</Table.Th>
                  <Table.Th ta="right">KL (nats)</Table.Th>
                  <Table.Th ta="right">Reward</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {curves.flatMap((curve) =>
                  curve.points.map((point) => (
                    <Table.Tr key={`${curve.run} ${point.step}`}>
                      <Table.Td>{curve.label}</Table.Td>
                      <Table.Td ta="right">{count(point.step)}</Table.Td>
                      <Table.Td ta="right">{plain(3)(point.kl)}</Table.Td>
                      <Table.Td ta="right">{plain(3)(point.reward)}</Table.Td>
                    </Table.Tr>
                  )),
                )}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </details>
      </Stack>
    </Card>
  );
}
