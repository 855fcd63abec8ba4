import { queryOptions } from "@tanstack/react-query";
import { api, data, Problem, unsafeHeaders, type Schemas } from "../client";

export type Import = Schemas["ImportOut"];

export const importsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "imports"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/imports", {
          params: { path: { project }, query: { limit: 20 } },
        }),
      ),
  });

/** What files can be imported; it only changes with the server. */
export const formatsQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "import-formats"],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/imports/formats", { params: { path: { project } } })),
    staleTime: Infinity,
  });

/** Events tell of every step; asking now and then covers a stream that is broken. */
export const importQuery = (project: string, id: string) =>
  queryOptions({
    queryKey: [project, "import", id],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/imports/{import_id}", {
          params: { path: { project, import_id: id } },
        }),
      ),
    refetchInterval: (query) =>
      query.state.data && ["validating", "importing"].includes(query.state.data.state) ? 1000 : false,
  });

export const previewQuery = (project: string, id: string, version: string) =>
  queryOptions({
    queryKey: [project, "import-preview", id, version],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/imports/{import_id}/preview", {
          params: { path: { project, import_id: id }, query: { limit: 20 } },
        }),
      ),
    staleTime: Infinity,
  });

/** Sends a file with progress, which fetch cannot tell. */
export function upload(
  project: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<Import> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/v1/projects/${project}/imports`);
    for (const [name, value] of Object.entries(unsafeHeaders())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onProgress(event.loaded / Math.max(1, event.total));
    request.onerror = () =>
      reject(
        new Problem(
          0,
          "unreachable",
          "The upload was interrupted",
          "The server did not receive the whole file.",
          "Try again.",
        ),
      );
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    request.onload = () => {
      const response = new Response(request.responseText, { status: request.status });
      if (response.ok) resolve(JSON.parse(request.responseText) as Import);
      else void Problem.of(response).then(reject);
    };
    signal.addEventListener("abort", () => request.abort());
    const form = new FormData();
    form.append("file", file);
    request.send(form);
  });
}

/** An import of a dataset from a hub, by its name there. */
export const importFromHub = (project: string, hub: string) =>
  data(
    api.POST("/api/v1/projects/{project}/imports", {
      params: { path: { project } },
      body: { hub } as never,
      bodySerializer: () => {
        const form = new FormData();
        form.append("hub", hub);
        return form;
      },
    }),
  );

export const changeImport = (project: string, id: string, body: Schemas["ImportChange"]) =>
  data(
    api.PATCH("/api/v1/projects/{project}/imports/{import_id}", {
      params: { path: { project, import_id: id } },
      body,
    }),
  );

export const stepImport = (project: string, id: string, step: "validate" | "start" | "cancel") =>
  data(
    api.POST(`/api/v1/projects/{project}/imports/{import_id}/${step}`, {
      params: { path: { project, import_id: id } },
    }),
  );

export const deleteImport = (project: string, id: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/imports/{import_id}", {
      params: { path: { project, import_id: id } },
    }),
  );
