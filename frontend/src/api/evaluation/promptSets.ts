import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { form, type Fields } from "../form";

export type PromptSet = Schemas["PromptSetOut"];

/** The newest 200, of those with a part of their name where one is given. */
export const promptSetsQuery = (project: string, name?: string) =>
  queryOptions({
    queryKey: [project, "prompt-sets", ...(name ? ["named", name] : [])],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/prompt-sets", {
          params: { path: { project }, query: { name, limit: 200 } },
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

export const addPromptSet = (project: string, fields: Fields) =>
  data(
    api.POST("/api/v1/projects/{project}/prompt-sets", {
      params: { path: { project } },
      body: fields as never,
      bodySerializer: () => form(fields),
    }),
  );
