/** Where the report can be had as a file. */
export const reportHref = (
  project: string,
  evaluation: string,
  ending: "" | ".html" | ".pdf",
  baseline?: string | null,
) =>
  `/api/v1/projects/${encodeURIComponent(project)}/evaluations/${encodeURIComponent(evaluation)}/report${ending}` +
  (baseline ? `?baseline=${encodeURIComponent(baseline)}` : "");
