import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type SearchResult = Schemas["SearchResult"];

/** Everything of a project with a text in its name, tags or notes; the newest without a text. */
export const searchQuery = (project: string, q: string) =>
  queryOptions({
    queryKey: [project, "search", q],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/search", { params: { path: { project }, query: { q } } })),
    placeholderData: keepPreviousData,
  });
