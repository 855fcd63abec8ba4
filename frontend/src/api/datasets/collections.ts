import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Collection = Schemas["CollectionOut"];

export const collectionsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "collections"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/collections", { params: { path: { project } } })),
  });

export const collectionRowsQuery = (project: string, collection: string, removed: boolean) =>
  queryOptions({
    queryKey: [project, "collections", collection, removed],
    queryFn: async () => {
      const items: Schemas["CollectionRowOut"][] = [];
      let cursor: string | undefined;
      // A page with large rows ends early.
      do {
        const page = await data(
          api.GET("/api/v1/projects/{project}/collections/{collection}/rows", {
            params: { path: { project, collection }, query: { limit: 200 - items.length, removed, cursor } },
          }),
        );
        items.push(...page.items);
        cursor = page.next ?? undefined;
      } while (cursor && items.length < 200);
      return { items };
    },
  });

export const createCollection = (project: string, body: Schemas["CollectionCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/collections", { params: { path: { project } }, body }));

export const addCollectionRow = (project: string, collection: string, body: Schemas["CollectionRowAdd"]) =>
  data(
    api.POST("/api/v1/projects/{project}/collections/{collection}/rows", {
      params: { path: { project, collection } },
      body,
    }),
  );

export const removeCollectionRow = (project: string, collection: string, row: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/collections/{collection}/rows/{row}", {
      params: { path: { project, collection, row } },
    }),
  );

export const restoreCollectionRow = (project: string, collection: string, row: string) =>
  data(
    api.POST("/api/v1/projects/{project}/collections/{collection}/rows/{row}/restore", {
      params: { path: { project, collection, row } },
    }),
  );

/** Makes a dataset of the rows that a collection has now. */
export const freezeCollection = (project: string, collection: string) =>
  data(
    api.POST("/api/v1/projects/{project}/collections/{collection}/dataset", {
      params: { path: { project, collection } },
      body: {},
    }),
  );
