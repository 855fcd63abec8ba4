import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { evaluationKeys } from "./evaluations";

export type Judge = Schemas["JudgeOut"];
export type JudgeStyle = Judge["style"];
export type Verdict = Schemas["VerdictOut"];
export type VerdictStatus = Verdict["status"];

export interface VerdictFilters {
  status?: VerdictStatus;
  position?: number;
}

export const verdictsQuery = (project: string, evaluation: string, judge: string, filters: VerdictFilters) =>
  infiniteQueryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "verdicts", judge, filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/judges/{judge}/verdicts", {
          params: {
            path: { project, evaluation, judge },
            query: { ...filters, after: pageParam, limit: 50 },
          },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });

/** What a judge's verdicts would cost; nothing is created. */
export const judgeEstimateQuery = (
  project: string,
  { id, version }: { id: string; version: number },
  body: Schemas["JudgeIn"],
) =>
  queryOptions({
    queryKey: [project, "estimate", id, version, body],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/judges", {
          params: { path: { project, evaluation: id }, query: { dry_run: true } },
          body,
        }),
      ) as Promise<Schemas["JudgeEstimate"]>,
    retry: false,
    staleTime: 10_000,
    placeholderData: keepPreviousData,
  });

export const addJudge = (project: string, evaluation: string, body: Schemas["JudgeIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/judges", {
      params: { path: { project, evaluation } },
      body,
    }),
  );

export const retryJudge = (project: string, evaluation: string, judge: string) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/judges/{judge}/retry", {
      params: { path: { project, evaluation, judge } },
    }),
  );

export const changeBudget = (project: string, evaluation: string, judge: string, budget: number | null) =>
  data(
    api.PATCH("/api/v1/projects/{project}/evaluations/{evaluation}/judges/{judge}", {
      params: { path: { project, evaluation, judge } },
      body: { budget },
    }),
  );

export const calibrateJudge = (
  project: string,
  evaluation: string,
  judge: string,
  body: Pick<Schemas["CalibrationIn"], "dataset" | "limit">,
) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/judges/{judge}/calibrations", {
      params: { path: { project, evaluation, judge } },
      body: { ...body, seed: 0 },
    }),
  );

export type Jury = Schemas["JuryOut"];

export const juriesQuery = (project: string, { id, version }: { id: string; version: number }) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, id), "juries", version],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/juries", {
          params: { path: { project, evaluation: id } },
        }),
      ),
    placeholderData: keepPreviousData,
  });

export const addJury = (project: string, evaluation: string, body: Schemas["JuryIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/juries", {
      params: { path: { project, evaluation } },
      body,
    }),
  );

export const removeJury = (project: string, evaluation: string, jury: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/evaluations/{evaluation}/juries/{jury}", {
      params: { path: { project, evaluation, jury } },
    }),
  );

export const removeJudge = (project: string, evaluation: string, judge: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/evaluations/{evaluation}/judges/{judge}", {
      params: { path: { project, evaluation, judge } },
    }),
  );
