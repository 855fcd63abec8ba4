import { type DefaultError, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type RunViewQuery = Schemas["ViewQuery"];
export type SampleViewQuery = Schemas["SampleViewQuery"];

export interface View<Query> {
  id: string;
  name: string;
  query: Query;
  created_by: string;
}

/** The views of one list that a project keeps. */
export interface KeptViews<Query> {
  key: string[];
  all: () => Promise<View<Query>[]>;
  keep: (name: string, query: Query) => Promise<unknown>;
  remove: (name: string) => Promise<unknown>;
}

export const viewsQuery = <Query>({ key, all }: KeptViews<Query>) =>
  queryOptions<View<Query>[], DefaultError, View<Query>[], string[]>({ queryKey: key, queryFn: all });

export const runViews = (project: string): KeptViews<RunViewQuery> => ({
  key: [project, "run-views"],
  all: () => data(api.GET("/api/v1/projects/{project}/run-views", { params: { path: { project } } })),
  keep: (view, query) =>
    data(
      api.PUT("/api/v1/projects/{project}/run-views/{view}", {
        params: { path: { project, view } },
        body: { query },
      }),
    ),
  remove: (view) =>
    data(api.DELETE("/api/v1/projects/{project}/run-views/{view}", { params: { path: { project, view } } })),
});

export const sampleViews = (project: string): KeptViews<SampleViewQuery> => ({
  key: [project, "sample-views"],
  all: () => data(api.GET("/api/v1/projects/{project}/sample-views", { params: { path: { project } } })),
  keep: (view, query) =>
    data(
      api.PUT("/api/v1/projects/{project}/sample-views/{view}", {
        params: { path: { project, view } },
        body: { query },
      }),
    ),
  remove: (view) =>
    data(
      api.DELETE("/api/v1/projects/{project}/sample-views/{view}", { params: { path: { project, view } } }),
    ),
});
