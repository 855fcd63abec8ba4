import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, Problem, type Schemas } from "./client";

export type EvaluationSummary = Schemas["EvaluationOut"];
export type Evaluation = Schemas["EvaluationDetail"];
export type Entrant = Schemas["EntrantOut"];
export type EvaluationPrompt = Schemas["PromptOut"];
export type Judge = Schemas["JudgeOut"];
export type JudgeStyle = Judge["style"];
export type Verdict = Schemas["VerdictOut"];
export type VerdictStatus = Verdict["status"];
export type Campaign = Schemas["CampaignOut"];
export type GateVerdict = Schemas["GateVerdict"];
export type PromptSet = Schemas["PromptSetOut"];
export type AnswerFormat = "fastchat" | "alpaca_eval" | "arena_hard";

/** Everything of an evaluation is cached below this, so that one event renews it all. */
const of = (project: string, evaluation: string) => [project, "evaluation", evaluation] as const;

export const evaluationsQuery = (project: string) =>
  infiniteQueryOptions({
    queryKey: [project, "evaluations"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations", {
          params: { path: { project }, query: { cursor: pageParam, limit: 50 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

export const evaluationQuery = (project: string, evaluation: string) =>
  queryOptions({
    queryKey: of(project, evaluation),
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
    queryKey: [...of(project, evaluation), "prompts", filters],
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

export const promptAtQuery = (project: string, evaluation: string, position: number) =>
  queryOptions({
    queryKey: [...of(project, evaluation), "prompt", position],
    queryFn: async () => {
      const page = await data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/prompts", {
          params: { path: { project, evaluation }, query: { after: position - 1, limit: 1 } },
        }),
      );
      return page.items.find((one) => one.position === position) ?? null;
    },
  });

export interface VerdictFilters {
  status?: VerdictStatus;
  position?: number;
}

export const verdictsQuery = (project: string, evaluation: string, judge: string, filters: VerdictFilters) =>
  infiniteQueryOptions({
    queryKey: [...of(project, evaluation), "verdicts", judge, filters],
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

export const goldQuery = (project: string, evaluation: string, campaign: string) =>
  queryOptions({
    queryKey: [...of(project, evaluation), "gold", campaign],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/gold", {
          params: { path: { project, evaluation, campaign } },
        }),
      ),
  });

export const flagsQuery = (project: string, evaluation: string, campaign: string) =>
  queryOptions({
    queryKey: [...of(project, evaluation), "flags", campaign],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/flags", {
          params: { path: { project, evaluation, campaign } },
        }),
      ),
  });

export const promptSetsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "prompt-sets"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/prompt-sets", {
          params: { path: { project }, query: { limit: 200 } },
        }),
      ),
  });

export const knownPromptSetsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "prompt-sets", "known"],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/prompt-sets/known", { params: { path: { project } } })),
    staleTime: Infinity,
  });

/** What an endpoint that takes a file sees: the fields that say something. */
function form(fields: Record<string, string | boolean | File | null | undefined>): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === "") continue;
    made.append(name, value instanceof File ? value : String(value));
  }
  return made;
}

type Fields = Parameters<typeof form>[0];

export const addPromptSet = (project: string, fields: Fields) =>
  data(
    api.POST("/api/v1/projects/{project}/prompt-sets", {
      params: { path: { project } },
      body: fields as never,
      bodySerializer: () => form(fields),
    }),
  );

export const importAnswers = (project: string, evaluation: string, fields: Fields) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/answers", {
      params: { path: { project, evaluation } },
      body: fields as never,
      bodySerializer: () => form(fields),
    }),
  );

export const importJudgments = (project: string, evaluation: string, fields: Fields) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/judgments", {
      params: { path: { project, evaluation } },
      body: fields as never,
      bodySerializer: () => form(fields),
    }),
  );

/** The address of a file to save; the browser fetches it with its cookie. */
export function answersHref(project: string, evaluation: string, format: AnswerFormat, entrant?: string) {
  const query = new URLSearchParams({ format, ...(entrant ? { entrant } : {}) });
  return `/api/v1/projects/${project}/evaluations/${evaluation}/answers?${query}`;
}

export const judgmentsHref = (project: string, evaluation: string, judge: string) =>
  `/api/v1/projects/${project}/evaluations/${evaluation}/judges/${judge}/judgments`;

/** What a problem document says of one field of what was sent: `prompts.limit`, `entrants.2.model`. */
export function placeOf(error: Error | null, field: string): string | undefined {
  if (!(error instanceof Problem)) return undefined;
  const clean = (location: string) => location.replace(/^body\./, "");
  return error.places.find((place) => clean(place.location) === field)?.message;
}
