import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type ModelFacts = Required<Schemas["ModelFacts"]>;
export type ModelFit = Schemas["ModelFit"];
type Asked = { source: string } | { facts: ModelFacts };

/** A model that is not here yet against the workers: one of the hub by its name, or what is known of a folder. */
export const fitQuery = (project: string, asked: Asked | null) =>
  queryOptions({
    queryKey: [project, "fit", asked],
    queryFn: ({ signal }) =>
      data(
        api.POST("/api/v1/projects/{project}/models/fit", {
          params: { path: { project } },
          body: asked!,
          signal,
        }),
      ),
    enabled: asked !== null,
    retry: false,
    staleTime: 60_000,
  });
