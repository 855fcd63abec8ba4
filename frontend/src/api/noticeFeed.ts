import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type Notice = Schemas["NoticeOut"];

const path = (project: string) => ({ project });

/** Everything about the notices of a project, for invalidation. */
export const noticesKey = (project: string) => [project, "notices"];

export const unreadQuery = (project: string) =>
  queryOptions({
    queryKey: [...noticesKey(project), "unread"],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/notices/unread", { params: { path: path(project) } })),
  });

export const noticesQuery = (project: string, mentions: boolean) =>
  infiniteQueryOptions({
    queryKey: [...noticesKey(project), "list", mentions],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/notices", {
          params: { path: path(project), query: { mentions, cursor: pageParam, limit: 30 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const markRead = (project: string, until: number) =>
  data(
    api.POST("/api/v1/projects/{project}/notices/read", {
      params: { path: path(project) },
      body: { until },
    }),
  );
