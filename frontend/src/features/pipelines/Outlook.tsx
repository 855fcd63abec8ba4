import { Group, Progress, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { outlookQuery } from "../../api/runs/pipelines";
import { seconds } from "../../shared/format/format";

/** One bar for a whole pipeline under way, and the time that is left. */
export function Outlook({ project, pipeline }: { project: string; pipeline: string }) {
  const { data } = useQuery(outlookQuery(project, pipeline));
  if (!data) return null;
  const done = `${data.ended} of ${data.stages} stages`;
  return (
    <div>
      <Progress value={100 * data.share} size="lg" radius="sm" aria-label={`Whole pipeline, ${done}`} />
      <Group justify="space-between" mt={4} gap="xs">
        <Text size="sm">{done}</Text>
        <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {timeLeft(data)}
        </Text>
      </Group>
    </div>
  );
}

const NAMED = 3;

function timeLeft({ seconds_left, unknown }: Schemas["PipelineOutlook"]): string {
  if (seconds_left !== null) return `about ${seconds(seconds_left)} left`;
  const more = unknown.length - NAMED;
  const names = unknown.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return `no estimate yet: ${names} ${unknown.length === 1 ? "has" : "have"} not run in this recipe before`;
}
