import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type PoolMemory = Schemas["PoolMemory"];
export type RunEstimate = Schemas["RunEstimate"];
export type Run = Schemas["RunSummary"];
export type RunDetail = Schemas["RunDetail"];
export type RunState = Run["state"];
export type Series = Schemas["MetricSeries"];

export interface RunFilters {
  state?: RunState[];
  kind?: Schemas["RunSummary"]["kind"][];
  pipeline?: string;
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

export const runQuery = (project: string, run: string) =>
  queryOptions({
    queryKey: [project, "run", run],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}", { params: { path: { project, run } } })),
  });

export const metricsQuery = (project: string, run: string, live: boolean) =>
  queryOptions({
    queryKey: [project, "run", run, "metrics"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/runs/{run}/metrics", {
          params: { path: { project, run }, query: { points: 400 } },
        }),
      ),
    refetchInterval: live ? 3000 : false,
  });

/** The end of a run's log, and before it what is asked for. */
export const logsQuery = (project: string, run: string, live: boolean) =>
  infiniteQueryOptions({
    queryKey: [project, "run", run, "logs"],
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

export const pipelinesQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "pipelines"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines", {
          params: { path: { project }, query: { limit: 100 } },
        }),
      ),
  });

export const pipelineQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}", {
          params: { path: { project, pipeline } },
        }),
      ),
  });

export const reportQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline, "report"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}/report", {
          params: { path: { project, pipeline } },
        }),
      ),
  });
