import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import type { paths } from "../schema";

/** The newest 100, of those with a part of their name where one is given. */
export const pipelinesQuery = (project: string, name?: string) =>
  queryOptions({
    queryKey: [project, "pipelines", ...(name ? [name] : [])],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines", {
          params: { path: { project }, query: { name, limit: 100 } },
        }),
      ),
  });

type ListQuery = NonNullable<paths["/api/v1/projects/{project}/pipelines"]["get"]["parameters"]["query"]>;

export const listPipelines = (project: string, query: ListQuery) =>
  data(api.GET("/api/v1/projects/{project}/pipelines", { params: { path: { project }, query } }));

export const pipelineQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}", {
          params: { path: { project, pipeline } },
        }),
      ),
  });

/** Every model that it made or reused, the oldest first. */
export const pipelineModelsQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline, "models"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}/models", {
          params: { path: { project, pipeline } },
        }),
      ),
  });

const OUTLOOK_MS = 5_000;

/** `share` never shrinks: an estimate may be corrected, but what was shown as done stays done. */
export const outlookQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline, "outlook"],
    refetchInterval: OUTLOOK_MS,
    queryFn: async ({ client, queryKey }) => {
      const now = await data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}/outlook", {
          params: { path: { project, pipeline } },
        }),
      );
      const shown = client.getQueryData<Schemas["PipelineOutlook"]>(queryKey)?.share ?? 0;
      return { ...now, share: Math.max(shown, now.share) };
    },
  });

export const reportQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline, "report"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}/report", {
          params: { path: { project, pipeline } },
        }),
      ),
  });

export const sweepQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline, "sweep"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}/sweep", {
          params: { path: { project, pipeline } },
        }),
      ),
  });

export const roundsQuery = (project: string, pipeline: string) =>
  queryOptions({
    queryKey: [project, "pipeline", pipeline, "rounds"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/pipelines/{pipeline}/rounds", {
          params: { path: { project, pipeline } },
        }),
      ),
  });

export const launchPipeline = (project: string, body: Schemas["PipelineCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/pipelines", { params: { path: { project } }, body }));

export const cancelPipeline = (project: string, pipeline: string) =>
  data(
    api.POST("/api/v1/projects/{project}/pipelines/{pipeline}/cancel", {
      params: { path: { project, pipeline } },
    }),
  );

export const resumePipeline = (project: string, pipeline: string) =>
  data(
    api.POST("/api/v1/projects/{project}/pipelines/{pipeline}/resume", {
      params: { path: { project, pipeline } },
    }),
  );
