import { queryOptions } from "@tanstack/react-query";
import { api, data } from "../client";

export const waitingQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "waiting"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/waiting", { params: { path: { project } } })),
  });
