import { Card, Text, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, data } from "../../api/client";
import { Failure } from "../../shared/Feedback";
import { count, percent, short } from "../../shared/format";
import { Histogram } from "../../shared/Histogram";

interface Properties {
  project: string;
  dataset: string;
  beta: number;
  maxWeight: number | null;
}

/** How unequal the weights exp(z / beta) are, and how many rows they are worth. */
export function RwrPreview({ project, dataset, beta, maxWeight }: Properties) {
  const [asked] = useDebouncedValue({ beta, max_weight: maxWeight }, 250);
  const query = useQuery({
    queryKey: [project, "rwr", dataset, asked],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/previews/rwr", {
          params: { path: { project } },
          body: { data: dataset, ...asked } as never,
        }),
      ),
    enabled: asked.beta > 0,
    placeholderData: keepPreviousData,
    retry: false,
  });
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
              Nearly equal weights: this will train almost as SFT does. A smaller beta prefers high rewards
              more.
            </Text>
          )}
          <Histogram bins={query.data.bins} x="weight exp(z / beta)" />
        </>
      )}
    </Card>
  );
}
