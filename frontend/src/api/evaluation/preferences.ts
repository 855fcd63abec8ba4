import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { evaluationKeys } from "./evaluations";

/** Below the evaluation: it is asked again with every ranking. */
export const preferencesPreviewQuery = (
  project: string,
  evaluation: string,
  body: Schemas["PreferencesChoice"],
) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "preferences", body],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/preferences/preview", {
          params: { path: { project, evaluation } },
          body,
        }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const makePreferences = (project: string, evaluation: string, body: Schemas["PreferencesCreate"]) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/preferences", {
      params: { path: { project, evaluation } },
      body,
    }),
  );
