import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type Marks = Schemas["Marks"];
export type Marked = "run" | "pipeline" | "model" | "dataset" | "evaluation";

export const marksQuery = (project: string, type: Marked, item: string) =>
  queryOptions({
    queryKey: [project, "marks", type, item],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/marks/{type}/{item}", {
          params: { path: { project, type, item } },
        }),
      ),
  });

export const tagsQuery = (project: string, type: Marked) =>
  queryOptions({
    queryKey: [project, "marks", type],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/marks/{type}/tags", { params: { path: { project, type } } })),
  });

export const changeMarks = (project: string, type: Marked, item: string, body: Schemas["MarksChange"]) =>
  data(
    api.PATCH("/api/v1/projects/{project}/marks/{type}/{item}", {
      params: { path: { project, type, item } },
      body,
    }),
  );

export const setFavourite = (project: string, type: Marked, item: string, on: boolean) => {
  const params = { path: { project, type, item } };
  const path = "/api/v1/projects/{project}/marks/{type}/{item}/favourite";
  return on ? data(api.PUT(path, { params })) : data(api.DELETE(path, { params }));
};
