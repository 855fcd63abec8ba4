import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type PoolMemory = Schemas["PoolMemory"];
export type RunEstimate = Schemas["RunEstimate"];
export type Run = Schemas["RunSummary"];
export type RunRow = Schemas["RunRow"];
export type RunDetail = Schemas["RunDetail"];
type RunState = Run["state"];
export type Series = Schemas["MetricSeries"];

/** States that a run stays in. */
export const ENDED = ["succeeded", "failed", "cancelled", "skipped"];

export interface RunFilters {
  state?: RunState[];
  kind?: Schemas["RunSummary"]["kind"][];
  pipeline?: string;
  filter?: string;
  sort?: string;
  column?: string[];
}

export const runsQuery = (project: string, filters: RunFilters) =>
  infiniteQueryOptions({
    queryKey: [project, "runs", filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/runs", {
          params: { path: { project }, query: { ...filters, cursor: pageParam, limit: 50 } as never },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });

/** A file of all runs that the filters find, with these columns. */
export function runTableHref(project: string, filters: RunFilters): string {
  const asked = new URLSearchParams();
  for (const [name, given] of Object.entries(filters) as [string, string | string[] | undefined][])
    for (const one of given === undefined ? [] : [given].flat()) asked.append(name, one);
  return `/api/v1/projects/${encodeURIComponent(project)}/run-table?${asked}`;
}

export const runQuery = (project: string, run: string) =>
  queryOptions({
    queryKey: [project, "run", run],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}", { params: { path: { project, run } } })),
  });

/**
 * All metrics of a run, or some. Next to the run's key, not below it: refreshing the run must not restart the requests
 * for its curves and its log.
 */
export const metricsQuery = (
  project: string,
  run: string,
  live: boolean,
  name: string[] = [],
  points = 400,
) =>
  queryOptions({
    queryKey: [project, "metrics", run, points, ...name],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/runs/{run}/metrics", {
          params: { path: { project, run }, query: { points, name } },
        }),
      ),
    refetchInterval: live ? 3000 : false,
  });

/** The end of a run's log, and before it what is asked for. */
export const logsQuery = (project: string, run: string, live: boolean) =>
  infiniteQueryOptions({
    queryKey: [project, "logs", run],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/runs/{run}/logs", {
          params: { path: { project, run }, query: { limit: 500, newest_first: true, cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: live ? 3000 : false,
  });

/** What equal work cost before, or why the server would not start this one. */
export const estimateQuery = (project: string, body: Schemas["RunWork"]) =>
  queryOptions({
    queryKey: [project, "estimate", body],
    queryFn: () =>
      data(api.POST("/api/v1/projects/{project}/runs/estimate", { params: { path: { project } }, body })),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const UNDER_WAY = ["pending", "queued", "running"];

/** Has the rows of a training run tokenised, and asks until that has ended. Equal checks are one. */
export const rowCheckQuery = (project: string, body: Schemas["RowCheckIn"]) =>
  queryOptions({
    queryKey: [project, "row-check", body],
    queryFn: () =>
      data(api.POST("/api/v1/projects/{project}/runs/row-check", { params: { path: { project } }, body })),
    refetchInterval: ({ state }) => (UNDER_WAY.includes(state.data?.state ?? "") ? 1000 : false),
    retry: false,
  });

export const launchRun = (project: string, body: Schemas["RunCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/runs", { params: { path: { project } }, body }));

export const moveRun = (project: string, run: string, body: Schemas["RunPlace"]) =>
  data(api.PATCH("/api/v1/projects/{project}/runs/{run}", { params: { path: { project, run } }, body }));

export const cancelRun = (project: string, run: string) =>
  data(api.POST("/api/v1/projects/{project}/runs/{run}/cancel", { params: { path: { project, run } } }));

export const pauseRun = (project: string, run: string) =>
  data(api.POST("/api/v1/projects/{project}/runs/{run}/pause", { params: { path: { project, run } } }));

export const changeRun = (project: string, run: string, config: Record<string, number>) =>
  data(
    api.POST("/api/v1/projects/{project}/runs/{run}/change", {
      params: { path: { project, run } },
      body: { config },
    }),
  );

export const resumeRun = (project: string, run: string, config: Record<string, unknown>) =>
  data(
    api.POST("/api/v1/projects/{project}/runs/{run}/resume", {
      params: { path: { project, run } },
      body: { config },
    }),
  );
