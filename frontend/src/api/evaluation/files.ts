import { api, data } from "../client";
import { form, type Fields } from "../form";

export type AnswerFormat = "fastchat" | "alpaca_eval" | "arena_hard";

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
