import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type MethodFit = Schemas["MethodFit"];
export type Way = Schemas["Way"];

/** What each method would learn from a dataset. Its rows never change, but rewards come, and the project's split may. */
export const datasetMethodsQuery = (project: string, dataset: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "methods"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/methods", {
          params: { path: { project, dataset } },
        }),
      ),
    retry: false,
  });

export const convertDataset = (project: string, dataset: string, way: Way) =>
  data(
    api.POST("/api/v1/projects/{project}/datasets/{dataset}/conversions", {
      params: { path: { project, dataset } },
      body: { conversion: way.conversion!, source: way.source, name: null },
    }),
  );
