import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type RunGroups = Schemas["RunGroups"];
export type AnswerGroup = Schemas["AnswerGroup"];
export type GroupAnswer = Schemas["GroupAnswer"];

export const groupsQuery = (project: string, run: string, live: boolean) =>
  queryOptions({
    queryKey: [project, "groups", run],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}/groups", { params: { path: { project, run } } })),
    refetchInterval: live ? 3000 : false,
  });

export const groupQuery = (project: string, run: string, step: number, place: number) =>
  queryOptions({
    queryKey: [project, "groups", run, step, place],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/runs/{run}/groups/{step}/{place}", {
          params: { path: { project, run, step, place } },
        }),
      ),
    placeholderData: keepPreviousData,
  });
