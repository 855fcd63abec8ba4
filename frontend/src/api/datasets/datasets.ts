import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, Problem, type Schemas } from "../client";
import type { paths } from "../schema";

export interface DatasetFilters {
  /** A part of the name. */
  name?: string;
  kind?: Schemas["DatasetOut"]["kind"][];
}

/** The newest 200 that fit. */
export const datasetsQuery = (project: string, filters?: DatasetFilters) =>
  queryOptions({
    queryKey: [project, "datasets", ...(filters ? [filters] : [])],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets", {
          params: { path: { project }, query: { ...filters, limit: 200 } },
        }),
      ),
  });

type ListQuery = NonNullable<paths["/api/v1/projects/{project}/datasets"]["get"]["parameters"]["query"]>;

export const listDatasets = (project: string, query: ListQuery) =>
  data(api.GET("/api/v1/projects/{project}/datasets", { params: { path: { project }, query } }));

export const deleteDataset = (project: string, dataset: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/datasets/{dataset}", {
      params: { path: { project, dataset } },
    }),
  );

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
  match?: "part";
  source?: string;
  reward_min?: number;
  reward_max?: number;
  group?: number;
  marked?: "flagged" | "commented" | "changed";
}

export type Sample = Schemas["SampleOut"];

/** Rows of an unfiltered table from `from` on. */
export const sampleBlockQuery = (project: string, dataset: string, from: number, rows: number) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "block", from, rows],
    queryFn: async () => {
      const items: Sample[] = [];
      let cursor: string | undefined;
      // A page with large rows ends early.
      do {
        const page = await data(
          api.GET("/api/v1/projects/{project}/datasets/{dataset}/samples", {
            params: {
              path: { project, dataset },
              query: { from_row: from, limit: rows - items.length, cursor },
            },
          }),
        );
        items.push(...page.items);
        cursor = page.next ?? undefined;
      } while (cursor && items.length < rows);
      return { items };
    },
    staleTime: Infinity,
  });

const WHOLE_TEXTS = 100_000;

/** The texts of one row with the hits of a search marked; none where the row is no hit. */
export const excerptsQuery = (project: string, dataset: string, row: number, q: string, match?: "part") =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "excerpts", row, q, match],
    queryFn: async () => {
      const page = await data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/samples", {
          params: {
            path: { project, dataset },
            query: { q, match, from_row: row, limit: 1, excerpt: WHOLE_TEXTS },
          },
        }),
      );
      return page.items.find((one) => one.row === row)?.excerpts ?? [];
    },
    staleTime: Infinity,
  });

/** Where a row can be had whole that is shown in part. */
export const wholeRow = (project: string, dataset: string, row: number) =>
  `/api/v1/projects/${encodeURIComponent(project)}/datasets/${encodeURIComponent(dataset)}/samples?from_row=${row}&limit=1&whole=true`;

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
