import { Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Schemas } from "../../api/client";
import { estimateQuery, rowCheckQuery } from "../../api/runs/runs";
import { count } from "../../shared/format/format";

/** How many rows of a training run are too long, counted by a worker while the form is open. What it finds to warn of,
 * or to refuse, comes with the next estimate. */
export function RowCheck({
  project,
  work,
  pool,
}: {
  project: string;
  work: Schemas["RunWork"];
  pool: string;
}) {
  const client = useQueryClient();
  const found = useQuery(rowCheckQuery(project, { ...work, pool })).data;
  const matters = found?.state === "succeeded" && (found.warning ?? found.refusal) !== null;
  const key = JSON.stringify(estimateQuery(project, work).queryKey.slice(0, 2));
  useEffect(() => {
    if (matters) void client.invalidateQueries({ queryKey: JSON.parse(key) as string[] });
  }, [client, key, matters]);
  if (found === undefined || matters) return null;
  return (
    <Text size="sm" c="dimmed" role="status">
      {found === null
        ? "The rows are not checked before the launch because a model is imported first. The run checks them."
        : found.state === "succeeded"
          ? `${found.too_long ? count(found.too_long) : "None"} of ${count(found.checked)} checked rows (of ${count(found.rows)}) ${found.too_long > 1 ? "are" : "is"} too long.`
          : ["failed", "cancelled"].includes(found.state)
            ? `The rows could not be checked: ${found.reason}.`
            : "A worker will check how many rows are too long."}
    </Text>
  );
}
