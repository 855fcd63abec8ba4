import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { UNDER_WAY } from "./runs";

export const recipesQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "recipes"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/recipes", { params: { path: { project } } })),
    staleTime: Infinity,
  });

export const schemaQuery = (project: string, kind: string) =>
  queryOptions({
    queryKey: [project, "schema", kind],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/schemas/{kind}", {
          params: { path: { project, kind } as never },
        }),
      ),
    staleTime: Infinity,
  });

/** What a recipe's text asks for: its inputs. */
export const recipeTextQuery = (project: string, text: string) =>
  queryOptions({
    queryKey: [project, "recipe-text", text],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/recipes/read", {
          params: { path: { project } },
          body: { text },
        }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** The stages that a text and its settings give, with their faults. */
export const recipeDraftQuery = (project: string, body: Schemas["RecipeRequest"]) =>
  queryOptions({
    queryKey: [project, "recipe-draft", body],
    queryFn: () =>
      data(api.POST("/api/v1/projects/{project}/recipes/draft", { params: { path: { project } }, body })),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** Has the rows of training stages tokenised, and asks until all checks have ended. Equal checks are one. */
export const stageRowChecksQuery = (project: string, body: Schemas["RecipeCheck"]) =>
  queryOptions({
    queryKey: [project, "recipe-row-checks", body],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/recipes/row-checks", { params: { path: { project } }, body }),
      ),
    refetchInterval: ({ state }) =>
      state.data?.some(({ check }) => check && UNDER_WAY.includes(check.state)) ? 1000 : false,
    placeholderData: keepPreviousData,
    retry: false,
  });
