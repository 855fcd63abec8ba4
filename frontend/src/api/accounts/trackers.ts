import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Tracker = Schemas["TrackerOut"];
export type TrackerKind = Tracker["kind"];

export const KINDS: Record<TrackerKind, string> = {
  mlflow: "MLflow",
  wandb: "W&B",
  tensorboard: "TensorBoard",
  trackio: "Trackio",
};

export const trackersQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "trackers"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/trackers", { params: { path: { project } } })),
    // Exports have no event.
    refetchInterval: 10_000,
  });

export const exportsQuery = (project: string, run: string, live: boolean) =>
  queryOptions({
    queryKey: [project, "runs", run, "exports"],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}/exports", { params: { path: { project, run } } })),
    refetchInterval: ({ state }) =>
      live || state.data?.some((one) => one.active && !one.complete) ? 5_000 : false,
  });

export const createTracker = (project: string, body: Schemas["TrackerCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/trackers", { params: { path: { project } }, body }));

export const changeTracker = (project: string, tracker: string, body: Schemas["TrackerChange"]) =>
  data(
    api.PATCH("/api/v1/projects/{project}/trackers/{tracker}", {
      params: { path: { project, tracker } },
      body,
    }),
  );

export const deleteTracker = (project: string, tracker: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/trackers/{tracker}", { params: { path: { project, tracker } } }),
  );

export const exportRun = (project: string, tracker: string, run: string) =>
  data(
    api.POST("/api/v1/projects/{project}/trackers/{tracker}/exports", {
      params: { path: { project, tracker } },
      body: { run },
    }),
  );
