import { Card, Text, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { weightsPreviewQuery } from "../../../api/runs/previews";
import { Failure } from "../../../shared/Feedback";
import { count, percent, short } from "../../../shared/format/format";
import { Histogram } from "../../../shared/charts/Histogram";

interface Properties {
  project: string;
  dataset: string;
  beta: number;
  maxWeight: number | null;
}

/** How unequal the weights exp(z / beta) are, and how many rows they are worth. */
export function WeightsPreview({ project, dataset, beta, maxWeight }: Properties) {
  const now = useMemo(() => ({ beta, max_weight: maxWeight }), [beta, maxWeight]);
  const [asked] = useDebouncedValue(now, 250);
  const query = useQuery(weightsPreviewQuery(project, dataset, asked));
  return (
    <Card withBorder>
      <Title order={2} size="h5" mb="xs">
        Weights
      </Title>
      {query.error && <Failure error={query.error} />}
      {query.data && (
        <>
          <Text mb="sm" aria-live="polite">
            Effective sample size <b>{percent(query.data.effective_sample_size)}</b> of {count(query.data.n)}{" "}
            training rows; largest weight {short(query.data.largest_weight)}, {percent(query.data.clipped)}{" "}
            clipped.
          </Text>
          {query.data.effective_sample_size > 0.9 && (
            <Text size="sm" c="dimmed" mb="sm">
              Nearly equal weights: rewards will hardly affect training. A smaller beta favours high rewards
              more.
            </Text>
          )}
          <Histogram bins={query.data.bins} x="weight exp(z / beta)" />
        </>
      )}
    </Card>
  );
}
