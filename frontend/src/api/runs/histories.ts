import { api, data } from "../client";
import { form, type Fields } from "../form";

export const importHistory = (project: string, fields: Fields) =>
  data(
    api.POST("/api/v1/projects/{project}/runs/histories", {
      params: { path: { project } },
      body: fields as never,
      bodySerializer: () => form(fields),
    }),
  );
