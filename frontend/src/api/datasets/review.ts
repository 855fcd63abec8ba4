import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type RowReview = Schemas["RowReview"];
export type RowChange = Schemas["RowChangeOut"];
type Row = { project: string; dataset: string; number: number };

export const reviewQuery = (project: string, dataset: string) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "review"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/review", {
          params: { path: { project, dataset } },
        }),
      ),
  });

export const rowReviewQuery = ({ project, dataset, number }: Row) =>
  queryOptions({
    queryKey: [project, "dataset", dataset, "review", "row", number],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/review/rows/{number}", {
          params: { path: { project, dataset, number } },
        }),
      ),
  });

export const pendingQuery = (project: string, dataset: string) =>
  infiniteQueryOptions({
    queryKey: [project, "dataset", dataset, "review", "pending"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/datasets/{dataset}/review/changes", {
          params: { path: { project, dataset }, query: { cursor: pageParam, limit: 20 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

/** What shows the marks of rows: counts, filters and the rows themselves. */
export const refreshReview = (client: QueryClient, project: string, dataset: string) =>
  client.invalidateQueries({
    queryKey: [project, "dataset", dataset],
    predicate: ({ queryKey }) => ["review", "block", "samples", "count"].includes(String(queryKey[3])),
  });

export const changeRow = (path: Row, body: Schemas["RowChangeIn"]) =>
  data(
    api.PUT("/api/v1/projects/{project}/datasets/{dataset}/review/rows/{number}/change", {
      params: { path },
      body,
    }),
  );

export const undoRow = (path: Row, revision: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/datasets/{dataset}/review/rows/{number}/change", {
      params: { path, query: { based_on: revision } },
    }),
  );

export const discardChanges = (project: string, dataset: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/datasets/{dataset}/review/changes", {
      params: { path: { project, dataset } },
    }),
  );

export const makeVersion = (project: string, dataset: string, name: string | null) =>
  data(
    api.POST("/api/v1/projects/{project}/datasets/{dataset}/review/version", {
      params: { path: { project, dataset } },
      body: { name },
    }),
  );

export const flagRow = (path: Row, reason: string) =>
  data(
    api.PUT("/api/v1/projects/{project}/datasets/{dataset}/review/rows/{number}/flag", {
      params: { path },
      body: { reason },
    }),
  );

export const unflagRow = (path: Row) =>
  data(
    api.DELETE("/api/v1/projects/{project}/datasets/{dataset}/review/rows/{number}/flag", {
      params: { path },
    }),
  );

export const commentRow = (path: Row, text: string) =>
  data(
    api.POST("/api/v1/projects/{project}/datasets/{dataset}/review/rows/{number}/comments", {
      params: { path },
      body: { text },
    }),
  );

export const editRowComment = (project: string, dataset: string, comment: string, text: string) =>
  data(
    api.PATCH("/api/v1/projects/{project}/datasets/{dataset}/review/comments/{comment}", {
      params: { path: { project, dataset, comment } },
      body: { text },
    }),
  );

export const deleteRowComment = (project: string, dataset: string, comment: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/datasets/{dataset}/review/comments/{comment}", {
      params: { path: { project, dataset, comment } },
    }),
  );
