import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type Collection = Schemas["CollectionOut"];

export const collectionsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "collections"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/collections", { params: { path: { project } } })),
  });

export const collectionRowsQuery = (project: string, collection: string, removed: boolean) =>
  queryOptions({
    queryKey: [project, "collections", collection, removed],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/collections/{collection}/rows", {
          params: { path: { project, collection }, query: { limit: 200, removed } },
        }),
      ),
  });
