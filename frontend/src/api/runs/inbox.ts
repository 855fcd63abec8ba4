import { queryOptions } from "@tanstack/react-query";
import { api, data } from "../client";

export const waitingQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "waiting"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/waiting", { params: { path: { project } } })),
  });

export const firstStepsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "first-steps"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/first-steps", { params: { path: { project } } })),
  });
