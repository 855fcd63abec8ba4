import { Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, data } from "../../api/client";
import { seconds } from "../../shared/format";

/** What equal work cost before. Says so when nothing is known. */
export function Estimate({
  project,
  config,
  inputs,
}: {
  project: string;
  config: Record<string, unknown>;
  inputs: Record<string, string>;
}) {
  const [asked] = useDebouncedValue({ config, inputs }, 400);
  const query = useQuery({
    queryKey: [project, "estimate", asked],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/runs/estimate", { params: { path: { project } }, body: asked }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });
  if (!query.data) return null;
  const found = query.data;
  return (
    <Text size="sm" c="dimmed">
      {found.device_seconds === null
        ? "No estimate: no run of this kind has finished in this project yet."
        : `About ${seconds(found.device_seconds)} of device time (${seconds(found.device_seconds_low)} to ${seconds(found.device_seconds_high)}), from ${found.based_on.length} earlier ${found.based_on.length === 1 ? "run" : "runs"} scaled to this work.`}
    </Text>
  );
}
