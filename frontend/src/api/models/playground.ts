import { queryOptions, type QueryClient } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { readEvents } from "../live/stream";

export type Comparison = Schemas["ComparisonOut"];
export type Answer = Schemas["AnswerOut"];
export type Curve = Schemas["CurveOut"];

export const ENDED: Answer["state"][] = ["succeeded", "failed", "cancelled"];

export const comparisonQuery = (project: string, comparison: string) =>
  queryOptions({
    queryKey: [project, "comparison", comparison],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/playground/comparisons/{comparison}", {
          params: { path: { project, comparison } },
        }),
      ),
    // The stream keeps it up to date; what has ended never changes.
    staleTime: Infinity,
  });

export const comparisonsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "comparisons"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/playground/comparisons", {
          params: { path: { project }, query: { limit: 20 } },
        }),
      ),
  });

export const curveKeys = { all: (project: string) => [project, "curves"] as const };

export const curvesQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [...curveKeys.all(project), model],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/playground/curves", {
          params: { path: { project }, query: { model, limit: 10 } },
        }),
      ),
  });

/** What one event of a comparison's stream says: an answer without its text, and what the text has gained. */
export type AnswerChange = Omit<Answer, "text"> & { at: number; text: string };

export function withChange(known: Comparison, change: AnswerChange): Comparison {
  const { at, text, ...answer } = change;
  const columns = known.columns.map((column) =>
    column.place === answer.place
      ? { ...column, ...answer, text: (column.text ?? "").slice(0, at) + text }
      : column,
  );
  return { ...known, columns };
}

/** Follows a comparison until all its answers have ended; after a break it starts over with everything so far. */
export async function followComparison(
  project: string,
  comparison: string,
  client: QueryClient,
  signal: AbortSignal,
): Promise<void> {
  const { queryKey } = comparisonQuery(project, comparison);
  const url = `/api/v1/projects/${project}/playground/comparisons/${comparison}/stream`;
  let ended = false;
  for (let failures = 0; !ended && !signal.aborted;) {
    try {
      await readEvents(url, { signal }, (change, name) => {
        if (name === "end") ended = true;
        else if (name === "answer") {
          client.setQueryData(queryKey, (known) => known && withChange(known, change as AnswerChange));
        }
      });
      failures = 0;
    } catch {
      failures += 1;
    }
    if (!ended) await new Promise((resolve) => setTimeout(resolve, Math.min(5000, 300 * 2 ** failures)));
  }
}

export const compare = (project: string, body: Schemas["ComparisonIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/playground/comparisons", { params: { path: { project } }, body }),
  );

export const cancelComparison = (project: string, comparison: string) =>
  data(
    api.POST("/api/v1/projects/{project}/playground/comparisons/{comparison}/cancel", {
      params: { path: { project, comparison } },
    }),
  );

export const drawCurve = (
  project: string,
  body: { model: string; reward: string; data: string | null; limit: number; scores: Schemas["Condition"][] },
) =>
  data(
    api.POST("/api/v1/projects/{project}/playground/curves", {
      params: { path: { project } },
      body: body as never,
    }),
  );

export const cancelCurve = (project: string, curve: string) =>
  data(
    api.POST("/api/v1/projects/{project}/playground/curves/{curve}/cancel", {
      params: { path: { project, curve } },
    }),
  );
