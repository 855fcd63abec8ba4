import { Card, Grid, Group, Slider, Stack, Text, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../../api/client";
import { datasetQuery } from "../../../api/datasets/datasets";
import { selectionPreviewQuery, rewardHistogramQuery } from "../../../api/runs/previews";
import { Failure } from "../../../shared/Feedback";
import { count, percent, signed } from "../../../shared/format/format";
import { Histogram } from "../../../shared/charts/Histogram";

interface Properties {
  project: string;
  dataset: string;
  threshold: number;
  onThreshold: (value: number) => void;
}

/** Which rows a threshold keeps, on their reward histogram, before anything is trained. */
export function SelectionPreview({ project, dataset, threshold, onThreshold }: Properties) {
  const [asked] = useDebouncedValue(threshold, 250);
  const known = useQuery(datasetQuery(project, dataset));
  const source = known.data?.reward_source;
  const histogram = useQuery(rewardHistogramQuery(project, dataset, source));
  const preview = useQuery(selectionPreviewQuery(project, dataset, asked));
  const error = preview.error ?? histogram.error;
  const { mean = 0, sd = 1 } = known.data?.normaliser ?? {};
  const bins = (histogram.data?.bins ?? []).map((bin) => ({
    low: (bin.low - mean) / sd,
    high: (bin.high - mean) / sd,
    count: bin.count,
  }));
  const kept = preview.data;
  return (
    <Card withBorder>
      <Title order={2} size="h5" mb="xs">
        What the filter keeps
      </Title>
      {error && <Failure error={error} />}
      {kept && (
        <Text mb="sm" aria-live="polite">
          <b>{count(kept.kept)}</b> of {count(kept.total)} training rows ({percent(kept.share)}) have a reward
          above {signed(asked)} z, which is {signed(kept.threshold_raw)} raw.
        </Text>
      )}
      {bins.length > 0 && (
        <>
          <Histogram bins={bins} from={threshold} x="reward (z)" />
          <Slider
            aria-label="Threshold in z"
            min={Math.floor(bins[0]!.low * 10) / 10}
            max={Math.ceil(bins.at(-1)!.high * 10) / 10}
            step={0.05}
            value={Number.isFinite(threshold) ? threshold : 0}
            onChange={onThreshold}
            label={(value) => signed(value)}
            thumbLabel="Threshold in z"
          />
        </>
      )}
      {kept && (
        <Grid mt="lg">
          <Side title="Just kept" examples={kept.kept_examples} />
          <Side title="Just dropped" examples={kept.dropped_examples} />
        </Grid>
      )}
    </Card>
  );
}

function Side({ title, examples }: { title: string; examples: Schemas["LabelledExample"][] }) {
  return (
    <Grid.Col span={{ base: 12, md: 6 }}>
      <Title order={3} size="h6" mb="xs">
        {title}
      </Title>
      <Stack gap="sm">
        {examples.map((example) => (
          <Card withBorder p="sm" key={example.row}>
            <Group justify="space-between" wrap="nowrap">
              <Text size="sm" fw={550} lineClamp={2}>
                {example.prompt.at(-1)?.content}
              </Text>
              <Text size="sm" fw={600} style={{ whiteSpace: "nowrap" }}>
                {signed(example.z, 3)} z
              </Text>
            </Group>
            <Text size="sm" c="dimmed" lineClamp={4}>
              {example.response}
            </Text>
          </Card>
        ))}
        {!examples.length && (
          <Text size="sm" c="dimmed">
            none
          </Text>
        )}
      </Stack>
    </Grid.Col>
  );
}
