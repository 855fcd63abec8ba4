import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type RunPairs = Schemas["RunPairs"];
export type PairMargin = Schemas["PairMargin"];
export type PairRead = Schemas["PairRead"];

/** Pairs of a finished run never change. */
export const runPairsQuery = (project: string, run: string) =>
  queryOptions({
    queryKey: [project, "pairs", run],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}/pairs", { params: { path: { project, run } } })),
    staleTime: Infinity,
  });

export const pairMarginsQuery = (project: string, run: string, step: number) =>
  queryOptions({
    queryKey: [project, "pairs", run, step],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/runs/{run}/pairs/{step}", {
          params: { path: { project, run, step } },
        }),
      ),
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });

export const readPairsQuery = (project: string, run: string, step: number, rows: number[]) =>
  queryOptions({
    queryKey: [project, "pairs", run, step, rows],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/runs/{run}/pairs/{step}/rows", {
          params: { path: { project, run, step }, query: { row: rows } },
        }),
      ),
    enabled: rows.length > 0,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });

export const editDataset = (project: string, dataset: string, drop: number[], flip: number[]) =>
  data(
    api.POST("/api/v1/projects/{project}/datasets/{dataset}/edits", {
      params: { path: { project, dataset } },
      body: { drop, flip, name: null },
    }),
  );
