import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "./client";

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

export const samplesQuery = (project: string, dataset: string, split: "train" | "held_out" | undefined) =>
  infiniteQueryOptions({
    queryKey: [project, "dataset", dataset, "samples", split],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/samples", {
          params: { path: { project, dataset }, query: { split, cursor: pageParam, limit: 25 } as never },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
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
