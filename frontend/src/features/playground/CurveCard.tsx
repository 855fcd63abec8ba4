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
import { datasetsQuery } from "../../api/datasets/datasets";
import {
  cancelCurve,
  type Curve,
  curveKeys,
  curvesQuery,
  drawCurve,
  ENDED,
} from "../../api/models/playground";
import { useMay } from "../../api/accounts/session";
import { Chart } from "../../shared/charts/Chart";
import type { Line } from "../../shared/charts/line";
import { DataTable } from "../../shared/tables/DataTable";
import { Failure } from "../../shared/Feedback";
import { count, signed, counted } from "../../shared/format/format";
import {
  along,
  type Attribute,
  type Condition,
  conditionOf,
  defaultOf,
  SCORE,
  shown,
  titleOf,
  valuesOf,
} from "../../shared/forms/condition";
import { When } from "../../shared/When";
import { requestedZ, type ScoreScale } from "./scoreScale";
import { useByName } from "../../shared/forms/useByName";

interface Properties {
  project: string;
  model: string;
  reward: string | null;
  /** What it can be asked for. */
  attributes: Attribute[];
  /** What the model's scores mean. */
  scale: ScoreScale | null;
}

/** What the reward model gives when the policy is asked for each reward: over many prompts, not one. */
export function CurveCard({ project, model, reward, attributes, scale }: Properties) {
  const client = useQueryClient();
  const mayRun = useMay(project, "run");
  const curves = useQuery(curvesQuery(project, model));
  const [dataset, setDataset] = useState<string | null>(null);
  const datasets = useByName((part) => datasetsQuery(project, part ? { name: part } : undefined), {
    chosen: [dataset],
  });
  const [limit, setLimit] = useState<number>(32);
  const [chosen, setChosen] = useState<string | null>(null);
  const [name, setName] = useState(attributes[0]!.name);
  const attribute = attributes.find((one) => one.name === name) ?? attributes[0]!;
  const start = useMutation({
    mutationFn: () =>
      drawCurve(project, {
        model,
        reward: reward!,
        data: dataset,
        limit,
        scores: stepsOf(attribute, attributes),
      }),
    onSuccess: (made) => {
      setChosen(made.id);
      return client.invalidateQueries({ queryKey: curveKeys.all(project) });
    },
  });
  const items = curves.data?.items ?? [];
  const curve = items.find((one) => one.id === chosen) ?? items[0];
  const stop = useMutation({
    mutationFn: () => cancelCurve(project, curve!.id),
    onSuccess: () => client.invalidateQueries({ queryKey: curveKeys.all(project) }),
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
              {model} asked for{" "}
              {attribute.name === SCORE ? "five rewards" : `five values of ${attribute.name}`} over a set of
              prompts, scored by {reward ?? "a reward model"}.
            </Text>
          </div>
          {mayRun && (
            <Group align="flex-end" gap="xs">
              {attributes.length > 1 && (
                <Select
                  label="Along"
                  size="xs"
                  w={140}
                  allowDeselect={false}
                  data={attributes.map((one) => one.name)}
                  value={attribute.name}
                  onChange={(next) => next && setName(next)}
                />
              )}
              <Select
                label="Prompts of"
                placeholder="what it was trained on"
                size="xs"
                w={210}
                clearable
                searchable
                data={(datasets.data ?? []).map((one) => one.name)}
                onSearchChange={datasets.onSearchChange}
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
                  {curve.waits_for ?? `${count(curve.done)} of ${counted(curve.total, "answer")}`}
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

/** Five values over the range of one attribute; the others as by default. */
function stepsOf(attribute: Attribute, attributes: Attribute[]): Condition[] {
  const { low, high, step, name } = attribute;
  const others = valuesOf(defaultOf(attributes));
  const steps = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const value = low + share * (high - low);
    return Number((Math.round(value / step) * step).toFixed(6));
  });
  return [...new Set(steps)].map((value) => conditionOf({ ...others, [name]: value }, attributes));
}

function CurveResult({ curve, scale }: { curve: Curve; scale: ScoreScale | null }) {
  const inZ = curve.points.every((point) => typeof point.mean_z === "number");
  const asked = useMemo(() => along(curve.points.map((point) => point.score)), [curve.points]);
  const lines = useMemo((): Line[] => {
    const points = curve.points
      .map((point, place) => ({ ...point, asked: asked.values[place]! }))
      .sort((a, b) => a.asked - b.asked);
    const achieved: Line = {
      label: "achieved, with its 95% interval",
      points: points.map((point) => ({ x: point.asked, y: inZ ? (point.mean_z ?? null) : point.mean })),
      band: points.map((point) => ({
        low: (inZ ? point.low_z : point.low) ?? point.mean,
        high: (inZ ? point.high_z : point.high) ?? point.mean,
      })),
    };
    if (!inZ || !scale || asked.name !== SCORE) return [achieved];
    const requested = points.map((point) => ({ x: point.asked, y: requestedZ(scale, point.asked) }));
    return [achieved, { label: "what the score asks for", points: requested }];
  }, [curve.points, asked, inZ, scale]);
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
        x={`requested ${titleOf(asked.name)}`}
        y={inZ ? "achieved (z)" : "achieved (raw)"}
        marks
        height={260}
      />
      <DataTable
        label="Points of the curve"
        rows={curve.points}
        keyOf={(point) => String(point.score)}
        columns={[
          { title: "Requested", cell: (point) => shown(point.score) },
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
