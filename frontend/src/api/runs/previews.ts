import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "../client";

/** The rewards of a dataset as they were given, before the normaliser. */
export const rewardHistogramQuery = (project: string, dataset: string, source: string | null | undefined) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "histogram", source],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/rewards/{source}/histogram", {
          params: { path: { project, dataset, source: source! }, query: { bins: 60 } },
        }),
      ),
    enabled: !!source,
    retry: false,
  });

/** Which rows a threshold in z keeps. */
export const selectionPreviewQuery = (project: string, dataset: string, threshold: number) =>
  queryOptions({
    queryKey: [project, "preview", "selection", dataset, threshold],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/previews/selection", {
          params: { path: { project } },
          body: { data: dataset, threshold },
        }),
      ),
    enabled: Number.isFinite(threshold),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** The weights that a beta gives the rows. */
export const weightsPreviewQuery = (
  project: string,
  dataset: string,
  asked: { beta: number; max_weight: number | null },
) =>
  queryOptions({
    queryKey: [project, "preview", "weights", dataset, asked],
    queryFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/previews/weights", {
          params: { path: { project } },
          body: { data: dataset, ...asked } as never,
        }),
      ),
    enabled: asked.beta > 0,
    placeholderData: keepPreviousData,
    retry: false,
  });
