import {
  Alert,
  Badge,
  Button,
  Card,
  Group,
  NumberInput,
  Progress,
  Select,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, data } from "../../api/client";
import { datasetsQuery } from "../../api/data";
import { curvesQuery, ENDED, type Curve } from "../../api/playground";
import { useMay } from "../../api/session";
import { Chart, type Line } from "../../shared/Chart";
import { DataTable } from "../../shared/DataTable";
import { Failure } from "../../shared/Feedback";
import { count, signed } from "../../shared/format";
import { When } from "../../shared/When";
import { requestedZ, type ScoreScale } from "./scoreScale";

interface Properties {
  project: string;
  model: string;
  reward: string | null;
  /** What the model's scores mean. */
  scale: ScoreScale | null;
}

/** What the reward model gives when the policy is asked for each reward: over many prompts, not one. */
export function CurveCard({ project, model, reward, scale }: Properties) {
  const client = useQueryClient();
  const mayRun = useMay(project, "run");
  const curves = useQuery(curvesQuery(project, model));
  const datasets = useQuery(datasetsQuery(project));
  const [dataset, setDataset] = useState<string | null>(null);
  const [limit, setLimit] = useState<number>(32);
  const [chosen, setChosen] = useState<string | null>(null);
  const start = useMutation({
    mutationFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/playground/curves", {
          params: { path: { project } },
          body: { model, reward: reward!, data: dataset, limit } as never,
        }),
      ),
    onSuccess: (made) => {
      setChosen(made.id);
      return client.invalidateQueries({ queryKey: [project, "curves"] });
    },
  });
  const items = curves.data?.items ?? [];
  const curve = items.find((one) => one.id === chosen) ?? items[0];
  const stop = useMutation({
    mutationFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/playground/curves/{curve}/cancel", {
          params: { path: { project, curve: curve!.id } },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: [project, "curves"] }),
  });
  const running = curve && !ENDED.includes(curve.state);
  return (
    <Card withBorder component="section" aria-label="Requested against achieved">
      <Stack gap="sm">
        <Group justify="space-between" align="flex-end">
          <div>
            <Title order={2} size="h5">
              Requested against achieved
            </Title>
            <Text size="sm" c="dimmed">
              {model} asked for five rewards over a set of prompts, scored by {reward ?? "a reward model"}.
            </Text>
          </div>
          {mayRun && (
            <Group align="flex-end" gap="xs">
              <Select
                label="Prompts of"
                placeholder="what it was trained on"
                size="xs"
                w={210}
                clearable
                searchable
                data={(datasets.data?.items ?? []).map((one) => one.name)}
                value={dataset}
                onChange={setDataset}
              />
              <NumberInput
                label="Held-out prompts"
                size="xs"
                w={120}
                min={1}
                max={500}
                allowDecimal={false}
                value={limit}
                onChange={(value) => setLimit(Number(value) || 32)}
              />
              <Button
                size="xs"
                variant="default"
                disabled={!reward}
                loading={start.isPending}
                onClick={() => start.mutate()}
              >
                Measure
              </Button>
            </Group>
          )}
        </Group>
        {start.error && <Failure error={start.error} />}
        {curves.error && <Failure error={curves.error} retry={() => void curves.refetch()} />}
        {!curve && curves.data && (
          <Text size="sm" c="dimmed">
            Not measured yet.
          </Text>
        )}
        {curve && (
          <>
            {items.length > 1 && (
              <Select
                aria-label="Which measurement"
                size="xs"
                w={340}
                allowDeselect={false}
                value={curve.id}
                onChange={setChosen}
                data={items.map((one) => ({
                  value: one.id,
                  label: `${new Date(one.created_at).toLocaleString()}: ${one.limit} prompts of ${one.dataset.name}`,
                }))}
              />
            )}
            {running && (
              <Group gap="sm">
                <Progress
                  value={(100 * curve.done) / Math.max(1, curve.total)}
                  flex={1}
                  aria-label="Answers"
                />
                <Text size="xs" c="dimmed">
                  {curve.waits_for ?? `${count(curve.done)} of ${count(curve.total)} answers`}
                </Text>
                <Button size="compact-xs" variant="subtle" color="red" onClick={() => stop.mutate()}>
                  Stop
                </Button>
              </Group>
            )}
            {curve.error && (
              <Alert color="red" title={curve.error.title}>
                {curve.error.detail} {curve.error.hint}
              </Alert>
            )}
            {curve.points.length > 0 && <CurveResult curve={curve} scale={scale} />}
          </>
        )}
      </Stack>
    </Card>
  );
}

function CurveResult({ curve, scale }: { curve: Curve; scale: ScoreScale | null }) {
  const inZ = curve.points.every((point) => typeof point.mean_z === "number");
  const lines = useMemo((): Line[] => {
    const points = [...curve.points].sort((a, b) => a.score - b.score);
    const achieved: Line = {
      label: "achieved, with its 95% interval",
      points: points.map((point) => ({ x: point.score, y: inZ ? (point.mean_z ?? null) : point.mean })),
      band: points.map((point) => ({
        low: (inZ ? point.low_z : point.low) ?? point.mean,
        high: (inZ ? point.high_z : point.high) ?? point.mean,
      })),
    };
    if (!inZ || !scale) return [achieved];
    const requested = points.map(({ score }) => ({ x: score, y: requestedZ(scale, score) }));
    return [achieved, { label: "what the score asks for", points: requested }];
  }, [curve.points, inZ, scale]);
  return (
    <>
      <Group gap="xs">
        <Badge color="gray">
          {count(curve.limit)} {curve.split.replace("_", " ")} prompts of {curve.dataset.name}
        </Badge>
        <Badge color="gray">scored by {curve.reward_model.name}</Badge>
        {typeof curve.spearman === "number" && (
          <Badge className="state-badge" color={curve.spearman > 0.8 ? "teal" : "orange"}>
            rank correlation {curve.spearman.toFixed(2)}
          </Badge>
        )}
        <Text size="xs" c="dimmed" component="div">
          <When at={curve.created_at} />
        </Text>
      </Group>
      <Chart
        lines={lines}
        x="requested score"
        y={inZ ? "achieved (z)" : "achieved (raw)"}
        marks
        height={260}
      />
      <DataTable
        label="Points of the curve"
        rows={curve.points}
        keyOf={(point) => String(point.score)}
        columns={[
          { title: "Requested", cell: (point) => signed(point.score, 1) },
          { title: "Achieved (z)", right: true, cell: (point) => signed(point.mean_z) },
          {
            title: "95% interval (z)",
            right: true,
            cell: ({ low_z: low, high_z: high }) =>
              typeof low === "number" ? `${signed(low)} to ${signed(high)}` : "–",
          },
          { title: "Raw", right: true, cell: (point) => signed(point.mean) },
          { title: "Tokens", right: true, wide: true, cell: (point) => count(Math.round(point.mean_tokens)) },
          { title: "Prompts", right: true, wide: true, cell: (point) => count(point.n) },
        ]}
      />
    </>
  );
}
