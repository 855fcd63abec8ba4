import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type RunProbes = Schemas["RunProbes"];
export type ProbedStep = Schemas["ProbedStep"];

export const probesQuery = (project: string, run: string, live: boolean) =>
  queryOptions({
    queryKey: [project, "probes", run],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/runs/{run}/probes", { params: { path: { project, run } } })),
    refetchInterval: live ? 3000 : false,
  });
