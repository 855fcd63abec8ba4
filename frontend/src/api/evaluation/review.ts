import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Review = Schemas["Review"];
export type ReviewItem = Schemas["ReviewItem"];
export type Opinion = Schemas["Opinion"];

const key = (project: string, campaign: string) => [project, "rankings", campaign, "review"];

/** The items to decide. */
export const reviewQuery = (project: string, campaign: string) =>
  queryOptions({
    queryKey: [...key(project, campaign), "open"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/rankings/{campaign}/review", {
          params: { path: { project, campaign } },
        }),
      ),
    refetchOnMount: "always",
  });

/** What was decided, the newest first. */
export const decisionsQuery = (project: string, campaign: string) =>
  infiniteQueryOptions({
    queryKey: [...key(project, campaign), "decided"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/rankings/{campaign}/decisions", {
          params: { path: { project, campaign }, query: { cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const reviewKey = key;

export const decide = (project: string, campaign: string, item: string, body: Schemas["Annotation"]) =>
  data(
    api.PUT("/api/v1/projects/{project}/rankings/{campaign}/decisions/{item}", {
      params: { path: { project, campaign, item } },
      body,
    }),
  );

export const withdrawDecision = (project: string, campaign: string, item: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/rankings/{campaign}/decisions/{item}", {
      params: { path: { project, campaign, item } },
    }),
  );
