import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, Problem, type Schemas } from "./client";

export const datasetsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "datasets"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets", {
          params: { path: { project }, query: { limit: 200 } },
        }),
      ),
  });

export const datasetQuery = (project: string, dataset: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}", { params: { path: { project, dataset } } }),
      ),
  });

export const statisticsQuery = (project: string, dataset: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "statistics"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/statistics", {
          params: { path: { project, dataset } },
        }),
      ),
    staleTime: Infinity,
  });

export type Statistics = Awaited<ReturnType<NonNullable<ReturnType<typeof statisticsQuery>["queryFn"]>>>;

/** What a table of samples is narrowed to. */
export interface SampleFilters {
  split?: "train" | "held_out";
  q?: string;
  source?: string;
  reward_min?: number;
  reward_max?: number;
}

export type Sample = Schemas["SampleOut"];

/** Rows of an unfiltered table from `from` on. */
export const sampleBlockQuery = (project: string, dataset: string, from: number, rows: number) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "block", from, rows],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/samples", {
          params: { path: { project, dataset }, query: { from_row: from, limit: rows } },
        }),
      ),
    staleTime: Infinity,
  });

export const samplesQuery = (project: string, dataset: string, filters: SampleFilters) =>
  infiniteQueryOptions({
    queryKey: [project, "dataset", dataset, "samples", filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/samples", {
          params: { path: { project, dataset }, query: { ...filters, cursor: pageParam, limit: 100 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    // A new dataset is still being indexed; soon it is not.
    refetchInterval: (query) =>
      query.state.error instanceof Problem && query.state.error.code === "search_not_ready" ? 3000 : false,
  });

export const sampleCountQuery = (project: string, dataset: string, filters: SampleFilters) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "count", filters],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/samples/count", {
          params: { path: { project, dataset }, query: filters },
        }),
      ),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });

export const modelsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "models"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models", {
          params: { path: { project }, query: { limit: 200 } },
        }),
      ),
  });

export const modelQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/models/{model}", { params: { path: { project, model } } })),
  });

export const lineageQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "lineage"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/lineage", {
          params: { path: { project, model } },
        }),
      ),
  });

export const promotionsQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "promotions"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/promotions", {
          params: { path: { project, model } },
        }),
      ),
  });

export const modelEvaluationsQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "evaluations"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/evaluations", {
          params: { path: { project, model } },
        }),
      ),
  });

export const modelBenchmarksQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "benchmarks", model],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/benchmarks", {
          params: { path: { project, model } },
        }),
      ),
  });

export const waitingQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "waiting"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/waiting", { params: { path: { project } } })),
  });

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: () => data(api.GET("/api/v1/system/workers")),
  refetchInterval: 5000,
});

export const queuesQuery = queryOptions({
  queryKey: ["queues"],
  queryFn: () => data(api.GET("/api/v1/system/queues")),
  refetchInterval: 5000,
});

export const recipesQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "recipes"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/recipes", { params: { path: { project } } })),
    staleTime: Infinity,
  });

export const schemaQuery = (project: string, kind: string) =>
  queryOptions({
    queryKey: [project, "schema", kind],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/schemas/{kind}", {
          params: { path: { project, kind } as never },
        }),
      ),
    staleTime: Infinity,
  });
