import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { evaluationKeys } from "./evaluations";

export type ReportLink = Schemas["ReportLinkOut"];

const PATH = "/api/v1/projects/{project}/evaluations/{evaluation}/report-links" as const;

/** Active links, the newest first. */
export const reportLinksQuery = (project: string, evaluation: string) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "report-links"],
    queryFn: () => data(api.GET(PATH, { params: { path: { project, evaluation } } })),
  });

export const createReportLink = (project: string, evaluation: string, days: number) =>
  data(api.POST(PATH, { params: { path: { project, evaluation } }, body: { expires_in_days: days } }));

export const revokeReportLink = (project: string, evaluation: string, link: string) =>
  data(api.DELETE(`${PATH}/{link}`, { params: { path: { project, evaluation, link } } }));

/** Where the report can be had as a file. */
export const reportHref = (
  project: string,
  evaluation: string,
  ending: "" | ".html" | ".pdf",
  baseline?: string | null,
) =>
  `/api/v1/projects/${encodeURIComponent(project)}/evaluations/${encodeURIComponent(evaluation)}/report${ending}` +
  (baseline ? `?baseline=${encodeURIComponent(baseline)}` : "");
