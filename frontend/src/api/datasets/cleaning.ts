import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type CleaningRules = Partial<Schemas["CleaningCreate"]>;
export type DroppedRow = Schemas["DroppedRow"];
export type Rule = Schemas["RuleCount"]["rule"];
/** Why a version lacks a row: a rule, or a person who marked it. */
export type Reason = DroppedRow["rule"];

const EXAMPLES = 5;

/** What rules would drop. Rows never change, but evaluations come and go. */
export const cleaningPreviewQuery = (project: string, dataset: string, rules: CleaningRules) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "cleaning", rules],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/datasets/{dataset}/cleaning/preview", {
          params: { path: { project, dataset } },
          body: { ...rules, examples: EXAMPLES } as Schemas["CleaningPreviewIn"],
        }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const cleanDataset = (project: string, dataset: string, body: CleaningRules) =>
  data(
    api.POST("/api/v1/projects/{project}/datasets/{dataset}/cleaning", {
      params: { path: { project, dataset } },
      body: body as Schemas["CleaningCreate"],
    }),
  );

export const droppedQuery = (project: string, dataset: string, rule: Reason | null) =>
  infiniteQueryOptions({
    queryKey: [project, "dataset", dataset, "dropped", rule],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/dropped", {
          params: { path: { project, dataset }, query: { rule: rule ?? undefined, cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    staleTime: Infinity,
  });
