import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, Problem, type Schemas } from "../client";
import type { paths } from "../schema";

export type EvaluationSummary = Schemas["EvaluationOut"];
export type Evaluation = Schemas["EvaluationDetail"];
export type Entrant = Schemas["EntrantOut"];
export type EvaluationPrompt = Schemas["PromptOut"];
export type GateVerdict = Schemas["GateVerdict"];

/** Everything of an evaluation is cached below `one`, so that one event renews it all. */
export const evaluationKeys = {
  list: (project: string) => [project, "evaluations"] as const,
  all: (project: string) => [project, "evaluation"] as const,
  one: (project: string, evaluation: string) => [project, "evaluation", evaluation] as const,
};

type ListQuery = NonNullable<paths["/api/v1/projects/{project}/evaluations"]["get"]["parameters"]["query"]>;

export const listEvaluations = (project: string, query: ListQuery) =>
  data(api.GET("/api/v1/projects/{project}/evaluations", { params: { path: { project }, query } }));

/** The newest 200 whose names contain `name`. */
export const evaluationsQuery = (project: string, name?: string) =>
  queryOptions({
    queryKey: [...evaluationKeys.list(project), "choice", ...(name ? [name] : [])],
    queryFn: () => listEvaluations(project, { name, limit: 200 }),
  });

/** What an evaluation of the dataset's own answers has. */
export const datasetAnswersQuery = (project: string, dataset: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "answers"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/answers", {
          params: { path: { project, dataset } },
        }),
      ),
    staleTime: 0,
  });

/** The evaluation of the dataset's own answers, made where there is none. */
export const evaluateDataset = (project: string, dataset: string) =>
  data(
    api.POST("/api/v1/projects/{project}/datasets/{dataset}/evaluation", {
      params: { path: { project, dataset } },
    }),
  );

export const evaluationQuery = (project: string, evaluation: string) =>
  queryOptions({
    queryKey: evaluationKeys.one(project, evaluation),
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}", {
          params: { path: { project, evaluation } },
        }),
      ),
  });

export interface PromptFilters {
  seen?: boolean;
  category?: string;
}

export const evaluationPromptsQuery = (project: string, evaluation: string, filters: PromptFilters) =>
  infiniteQueryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "prompts", filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/prompts", {
          params: { path: { project, evaluation }, query: { ...filters, after: pageParam, limit: 20 } },
        }),
      ),
    initialPageParam: -1,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });

/** Where a prompt and its answers can be had whole that are shown in part. */
export const wholePrompt = (project: string, evaluation: string, position: number) =>
  `/api/v1/projects/${encodeURIComponent(project)}/evaluations/${encodeURIComponent(evaluation)}/prompts?after=${position - 1}&limit=1&whole=true`;

export const promptAtQuery = (project: string, evaluation: string, position: number) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "prompt", position],
    queryFn: async () => {
      const page = await data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/prompts", {
          params: { path: { project, evaluation }, query: { after: position - 1, limit: 1 } },
        }),
      );
      return page.items.find((one) => one.position === position) ?? null;
    },
  });

export const evaluationReportQuery = (project: string, evaluation: string, baseline: string | null) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "report", baseline],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/report", {
          params: { path: { project, evaluation }, query: baseline ? { baseline } : {} },
        }),
      ),
    placeholderData: keepPreviousData,
  });

export const createEvaluation = (project: string, body: Schemas["EvaluationCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/evaluations", { params: { path: { project } }, body }));

export const changeEvaluation = (project: string, evaluation: string, body: Schemas["EvaluationChange"]) =>
  data(
    api.PATCH("/api/v1/projects/{project}/evaluations/{evaluation}", {
      params: { path: { project, evaluation } },
      body,
    }),
  );

export const deleteEvaluation = (project: string, evaluation: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/evaluations/{evaluation}", {
      params: { path: { project, evaluation } },
    }),
  );

export const addEntrant = (project: string, evaluation: string, body: Schemas["EntrantIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/entrants", {
      params: { path: { project, evaluation } },
      body,
    }),
  );

export const scoreAnswers = (project: string, evaluation: string, body: Schemas["RewardsIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/rewards", {
      params: { path: { project, evaluation } },
      body,
    }),
  );

export const decideGate = (project: string, evaluation: string, rules: unknown) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/gate", {
      params: { path: { project, evaluation } },
      body: rules as never,
    }),
  ) as Promise<GateVerdict>;

/** A problem document's message on one field of the request: `prompts.limit`, `entrants.2.model`. */
export function placeOf(error: Error | null, field: string): string | undefined {
  if (!(error instanceof Problem)) return undefined;
  const clean = (location: string) => location.replace(/^body\./, "");
  return error.places.find((place) => clean(place.location) === field)?.message;
}
