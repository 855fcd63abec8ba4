import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type BulkChange = Schemas["BulkChange"];
export type ColumnName = Schemas["ColumnName"];

/** What runs can be filtered by, and shown and sorted by. */
export const columnsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "run-columns"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/run-columns", { params: { path: { project } } })),
    staleTime: 60_000,
  });

/** What would happen, and to what else. */
export const consequencesQuery = (project: string, change: BulkChange) =>
  queryOptions({
    queryKey: [project, "run-changes", change],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/run-changes/preview", {
          params: { path: { project } },
          body: change,
        }),
      ),
    placeholderData: keepPreviousData,
    gcTime: 0,
    retry: false,
  });

export const changeRuns = (project: string, change: BulkChange) =>
  data(api.POST("/api/v1/projects/{project}/run-changes", { params: { path: { project } }, body: change }));
