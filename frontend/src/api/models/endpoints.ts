import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Endpoint = Schemas["EndpointOut"];

export const endpointsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "endpoints"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/endpoints", { params: { path: { project } } })),
  });

export const addEndpoint = (project: string, body: Schemas["EndpointCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/endpoints", { params: { path: { project } }, body }));

export const checkEndpoint = (project: string, endpoint: string) =>
  data(
    api.POST("/api/v1/projects/{project}/endpoints/{endpoint}/check", {
      params: { path: { project, endpoint } },
    }),
  );

export const removeEndpoint = (project: string, endpoint: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/endpoints/{endpoint}", {
      params: { path: { project, endpoint } },
    }),
  );
