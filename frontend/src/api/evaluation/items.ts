import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import type { paths } from "../schema";
import { evaluationKeys } from "./evaluations";

export type Item = Schemas["ItemOut"];
export type ItemDetail = Schemas["ItemDetail"];
export type ItemPage = Schemas["ItemPage"];
export type ItemVerdict = Schemas["ItemVerdict"];
export type AnswerTrace = Schemas["AnswerTrace"];
export type AnswerTurn = Schemas["AnswerTurn"];
export type AnswerVerdict = Schemas["AnswerVerdict"];
export type JudgeCall = Schemas["JudgeCall"];

type Query = NonNullable<
  paths["/api/v1/projects/{project}/evaluations/{evaluation}/items"]["get"]["parameters"]["query"]
>;
export type ItemFilters = Omit<Query, "after" | "limit">;

/** The prompts behind a figure of the report. */
export const itemsQuery = (project: string, evaluation: string, filters: ItemFilters) =>
  infiniteQueryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "items", filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/items", {
          params: { path: { project, evaluation }, query: { ...filters, after: pageParam, limit: 50 } },
        }),
      ),
    initialPageParam: -1,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });

/** One of them, with its neighbours. */
export const itemQuery = (project: string, evaluation: string, position: number, filters: ItemFilters) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "item", position, filters],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/items/{position}", {
          params: { path: { project, evaluation, position }, query: filters },
        }),
      ),
    placeholderData: keepPreviousData,
  });

export const judgeCallQuery = (project: string, evaluation: string, judge: string, verdict: number) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "call", judge, verdict],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/judges/{judge}/verdicts/{number}/call", {
          params: { path: { project, evaluation, judge, number: verdict } },
        }),
      ),
  });

export const answerTraceQuery = (
  project: string,
  evaluation: string,
  position: number,
  entrant: string,
  sample: number,
) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "trace", position, entrant, sample],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/items/{position}/answers/{entrant}", {
          params: { path: { project, evaluation, position, entrant }, query: { sample } },
        }),
      ),
  });
