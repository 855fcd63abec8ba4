import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type GgufPrecision = NonNullable<Schemas["GgufStart"]["precision"]>;

/** Finished exports as GGUF, newest first. */
export const ggufsQuery = (project: string, model: string) =>
  queryOptions({
    queryKey: [project, "model", model, "gguf"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/models/{model}/gguf", {
          params: { path: { project, model } },
        }),
      ),
  });

/** Starts the run that makes one; an equal finished export is taken over. */
export const exportGguf = (project: string, model: string, precision: GgufPrecision) =>
  data(
    api.POST("/api/v1/projects/{project}/models/{model}/gguf", {
      params: { path: { project, model } },
      body: { precision, pool: "default" },
    }),
  );
