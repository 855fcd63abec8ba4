import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Task = Schemas["Task"];
export type NextTasks = Schemas["NextTasks"];
export type OpenCampaign = Schemas["OpenCampaign"];
export type TaskType = Task["task_type"];

export const TASK_NAMES: Record<TaskType, string> = {
  ranking: "Ranking",
  pairwise: "Pairwise",
  likert: "Likert",
  correction: "Correction",
};

/** A request that hangs in a bad network counts as failed. */
const patience = () => AbortSignal.timeout(20_000);

export const campaignsToRankQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "rankings"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/rankings", {
          params: { path: { project } },
          signal: patience(),
        }),
      ),
    // Annotators follow no stream: what others do, and they themselves have done since, is looked up.
    staleTime: 0,
    refetchOnMount: "always",
    refetchInterval: 20_000,
  });

export const nextTasks = (project: string, campaign: string, ahead: number): Promise<NextTasks> =>
  data(
    api.POST("/api/v1/projects/{project}/rankings/{campaign}/next", {
      params: { path: { project, campaign } },
      body: { ahead },
      signal: patience(),
    }),
  );

export const saveDraft = (project: string, task: string, body: Schemas["Draft"], signal: AbortSignal) =>
  data(
    api.PUT("/api/v1/projects/{project}/rankings/tasks/{task}/draft", {
      params: { path: { project, task } },
      body,
      signal: AbortSignal.any([signal, patience()]),
    }),
  );

export const submitRanking = (project: string, task: string, body: Schemas["Submit"]) =>
  data(
    api.POST("/api/v1/projects/{project}/rankings/tasks/{task}/submit", {
      params: { path: { project, task } },
      body,
      signal: patience(),
    }),
  );

export const skipTask = (project: string, task: string, body: Schemas["Skip"]) =>
  data(
    api.POST("/api/v1/projects/{project}/rankings/tasks/{task}/skip", {
      params: { path: { project, task } },
      body,
      signal: patience(),
    }),
  );

export const undoRanking = (project: string, task: string) =>
  data(
    api.POST("/api/v1/projects/{project}/rankings/tasks/{task}/undo", {
      params: { path: { project, task } },
      signal: patience(),
    }),
  );

/** The flag is kept, and counts no more. */
export const removeSpanFlag = (project: string, span: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/rankings/spans/{span}", {
      params: { path: { project, span } },
    }),
  );

export const mineQuery = (project: string, campaign: string) =>
  queryOptions({
    queryKey: [project, "rankings", campaign, "mine"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/rankings/mine", {
          params: { path: { project }, query: { campaign, limit: 20 } },
          signal: patience(),
        }),
      ),
  });
