import { queryOptions } from "@tanstack/react-query";
import { api, data } from "../client";
import type { paths } from "../schema";

type Query = NonNullable<
  paths["/api/v1/projects/{project}/models/{model}/snippet"]["get"]["parameters"]["query"]
>;
export type SnippetFor = NonNullable<Query["for"]>;

/** Code that asks a model with its default score, or the highest. */
export const snippetQuery = (project: string, model: string, where: SnippetFor) =>
  queryOptions({
    queryKey: [project, "model", model, "snippet", where],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/snippet", {
          params: { path: { project, model }, query: { for: where } },
        }),
      ),
  });
