import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type ShareLink = Schemas["ShareLinkOut"];
export type NewShareLink = Schemas["ShareLinkCreated"];

const ALL = "/api/v1/projects/{project}/share-links" as const;
const OF_REPORT = "/api/v1/projects/{project}/evaluations/{evaluation}/report-links" as const;

/** What links show: the report of an evaluation, or runs and answers as they were. */
export type Shared = { kind: "report"; evaluation: string } | { kind: "runs" | "answers" };

/** Active links, the newest first. */
export const shareLinksQuery = (project: string, shared: Shared) =>
  queryOptions({
    queryKey: [project, "share-links", shared],
    queryFn: () =>
      shared.kind === "report"
        ? data(api.GET(OF_REPORT, { params: { path: { project, evaluation: shared.evaluation } } }))
        : data(api.GET(ALL, { params: { path: { project }, query: { kind: shared.kind } } })),
  });

export const shareReport = (project: string, evaluation: string, days: number) =>
  data(api.POST(OF_REPORT, { params: { path: { project, evaluation } }, body: { expires_in_days: days } }));

export const shareRuns = (project: string, runs: string[], metrics: string[], days: number) =>
  data(
    api.POST(`${ALL}/runs`, {
      params: { path: { project } },
      body: { runs, metrics, expires_in_days: days },
    }),
  );

export const shareAnswers = (project: string, comparison: string, days: number) =>
  data(
    api.POST("/api/v1/projects/{project}/playground/comparisons/{comparison}/share-links", {
      params: { path: { project, comparison } },
      body: { expires_in_days: days },
    }),
  );

export const revokeShareLink = (project: string, link: string) =>
  data(api.DELETE(`${ALL}/{link}`, { params: { path: { project, link } } }));
