import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type DifferentRow = Schemas["DifferentRow"];
export type Change = DifferentRow["change"];

export const versionsQuery = (project: string, dataset: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "versions"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/versions", {
          params: { path: { project, dataset } },
        }),
      ),
  });

export const differenceQuery = (project: string, dataset: string, before: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "difference", before],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/difference", {
          params: { path: { project, dataset }, query: { before } },
        }),
      ),
    staleTime: Infinity,
    retry: false,
  });

export const differentRowsQuery = (
  project: string,
  dataset: string,
  before: string,
  change: Change | undefined,
) =>
  infiniteQueryOptions({
    queryKey: [project, "dataset", dataset, "difference", before, change ?? "all"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/difference/rows", {
          params: { path: { project, dataset }, query: { before, change, cursor: pageParam, limit: 20 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    staleTime: Infinity,
  });
