import { useQueryClient } from "@tanstack/react-query";
import { type ComponentProps, useEffect } from "react";
import { Problem } from "../../../api/client";
import { runPairsQuery } from "../../../api/runs/pairs";
import { Loaded, Loading } from "../../../shared/Feedback";

type Properties<T> = ComponentProps<typeof Loaded<T>> & { project: string; run: string; live: boolean };

/**
 * What is about one step, as `Loaded` shows it. While a run is active, an evaluation may replace the step between two
 * requests: that is not a failure, and the newest is requested.
 */
export function LoadedStep<T>({ project, run, live, ...rest }: Properties<T>) {
  const client = useQueryClient();
  const { error } = rest.query;
  const replaced = live && error instanceof Problem && error.status === 404;
  useEffect(() => {
    if (replaced) void client.invalidateQueries({ queryKey: runPairsQuery(project, run, live).queryKey });
  }, [replaced, client, project, run, live]);
  return replaced ? <Loading rows={rest.rows ?? 4} /> : <Loaded {...rest} />;
}
