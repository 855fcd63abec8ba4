import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type RunPairs = Schemas["RunPairs"];
export type PairMargin = Schemas["PairMargin"];
export type PairRead = Schemas["PairRead"];

/** The pairs of a finished run never change; during the run, each evaluation replaces them. */
export const runPairsQuery = (project: string, run: string, live: boolean) =>
  queryOptions({
    queryKey: [project, "pairs", run, live],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}/pairs", { params: { path: { project, run } } })),
    staleTime: live ? 0 : Infinity,
    refetchInterval: live ? 3000 : false,
  });

/** `known`: how many there are; of a step that is being written there are more later. */
export const pairMarginsQuery = (project: string, run: string, step: number, known: number) =>
  queryOptions({
    queryKey: [project, "pairs", run, step, known],
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
    queryKey: [project, "pairs", run, step, "rows", rows],
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
