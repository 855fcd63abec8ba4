import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { pipelinesQuery } from "../../api/runs/pipelines";
import { Link } from "../../shared/links";

/** The pipeline of a run, by its name where it is one of the newest. */
export function PartOf({ project, pipeline }: { project: string; pipeline: string | null }) {
  const pipelines = useQuery(pipelinesQuery(project));
  if (!pipeline)
    return (
      <Text size="sm" c="dimmed">
        a single run
      </Text>
    );
  const name = pipelines.data?.items.find((one) => one.id === pipeline)?.name;
  return (
    <Link
      size="sm"
      to="/p/$project/pipelines/$pipeline"
      params={{ project, pipeline: name ?? pipeline }}
      draggable={false}
      style={{ whiteSpace: "nowrap" }}
    >
      {name ?? "its pipeline"}
    </Link>
  );
}
