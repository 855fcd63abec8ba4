import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

/** What can be pushed, by the name of its resource in the API. */
export type Pushed = "models" | "datasets";

export interface CardAsked {
  repo: string;
  licence?: string;
  /** For LoRA models only. */
  weights?: Schemas["ModelPush"]["weights"];
  base?: string;
}

/** The README.md that a push would send, and where the token comes from. */
export const cardQuery = (project: string, kind: Pushed, name: string, asked: CardAsked, enabled: boolean) =>
  queryOptions({
    queryKey: [project, kind, name, "card", asked],
    queryFn: () =>
      kind === "models"
        ? data(
            api.GET("/api/v1/projects/{project}/models/{model}/card", {
              params: { path: { project, model: name }, query: asked },
            }),
          )
        : data(
            api.GET("/api/v1/projects/{project}/datasets/{dataset}/card", {
              params: {
                path: { project, dataset: name },
                query: { repo: asked.repo, licence: asked.licence },
              },
            }),
          ),
    enabled,
    retry: false,
  });

/** Gives the run that pushes. */
export const push = (project: string, kind: Pushed, name: string, body: CardAsked & { private: boolean }) =>
  kind === "models"
    ? data(
        api.POST("/api/v1/projects/{project}/models/{model}/push", {
          params: { path: { project, model: name } },
          body: { weights: "merged", pool: "default", ...body },
        }),
      )
    : data(
        api.POST("/api/v1/projects/{project}/datasets/{dataset}/push", {
          params: { path: { project, dataset: name } },
          body: { repo: body.repo, licence: body.licence, private: body.private, pool: "default" },
        }),
      );

export const hubTokenQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "hub-token"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/hub-token", { params: { path: { project } } })),
  });

export const setHubToken = (project: string, token: string) =>
  data(api.PUT("/api/v1/projects/{project}/hub-token", { params: { path: { project } }, body: { token } }));

export const removeHubToken = (project: string) =>
  data(api.DELETE("/api/v1/projects/{project}/hub-token", { params: { path: { project } } }));
