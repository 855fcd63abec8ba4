import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import type { paths } from "../schema";

type Role = Schemas["ModelOut"]["role"];

export interface ModelFilters {
  /** A part of the name. */
  name?: string;
  role?: Role[];
}

const ANSWERS: Record<Role, boolean> = {
  base: true,
  sft: true,
  policy: true,
  reward: false,
  preference: false,
  critic: false,
};

export const ROLES = Object.keys(ANSWERS) as Role[];

/** Roles of the models that answer prompts. */
export const ANSWERING = ROLES.filter((role) => ANSWERS[role]);

/** The newest 200 that fit. */
export const modelsQuery = (project: string, filters?: ModelFilters) =>
  queryOptions({
    queryKey: [project, "models", ...(filters ? [filters] : [])],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models", {
          params: { path: { project }, query: { ...filters, limit: 200 } },
        }),
      ),
  });

type ListQuery = NonNullable<paths["/api/v1/projects/{project}/models"]["get"]["parameters"]["query"]>;

export const listModels = (project: string, query: ListQuery) =>
  data(api.GET("/api/v1/projects/{project}/models", { params: { path: { project }, query } }));

export const deleteModel = (project: string, model: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/models/{model}", {
      params: { path: { project, model } },
    }),
  );

export const modelQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/models/{model}", { params: { path: { project, model } } })),
  });

export const lineageQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "lineage"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/lineage", {
          params: { path: { project, model } },
        }),
      ),
  });

export const promotionsQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "promotions"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/promotions", {
          params: { path: { project, model } },
        }),
      ),
  });

export const modelEvaluationsQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "evaluations"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/evaluations", {
          params: { path: { project, model } },
        }),
      ),
  });

export const modelBenchmarksQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "benchmarks", model],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/benchmarks", {
          params: { path: { project, model } },
        }),
      ),
  });

export const pairedBenchmarksQuery = (project: string, model: string, other: string) =>
  queryOptions({
    queryKey: [project, "benchmarks", model, other],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/benchmarks/paired", {
          params: { path: { project, model }, query: { other } },
        }),
      ),
  });

export const modelAcademicQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "academic", model],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/academic", {
          params: { path: { project, model } },
        }),
      ),
  });

export const promoteModel = (project: string, model: string, body: Schemas["PromotionCreate"]) =>
  data(
    api.POST("/api/v1/projects/{project}/models/{model}/promotions", {
      params: { path: { project, model } },
      body,
    }),
  );

/** Gives the model that is in production then. */
export const rollBackModel = (project: string, model: string) =>
  data(
    api.POST("/api/v1/projects/{project}/models/{model}/roll-back", {
      params: { path: { project, model } },
      body: { note: "" },
    }),
  );
