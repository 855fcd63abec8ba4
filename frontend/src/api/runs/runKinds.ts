import { queryOptions } from "@tanstack/react-query";
import { api, data } from "../client";

/** Every run kind that can be started, training once for each method, in the order of lists. */
export const runKindsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "run-kinds"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/schemas", { params: { path: { project } } })),
    staleTime: Infinity,
  });
