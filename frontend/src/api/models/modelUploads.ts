import { api, data, Problem, unsafeHeaders, type Schemas } from "../client";
import { hashOf } from "./sha256";

type Upload = Schemas["ModelUploadOut"];

/** As the server takes them; whatever else a folder holds stays here. */
const MODEL_FILE =
  /^([^.].*\.(safetensors|safetensors\.index\.json|gguf|model|tiktoken|jinja)|(config|generation_config|special_tokens_map|vocab|added_tokens|steerboard)\.json|tokenizer.*\.json|vocab\.txt|merges\.txt)$/;

const TEMPLATE_BY_NAME = /^additional_chat_templates\/[^./\\][^/\\]*\.jinja$/;

/** The model's own files, of those that a browser gives for a folder and all below it. */
export const modelFiles = (files: File[]) =>
  files.filter((file) => {
    const path = pathOf(file);
    return TEMPLATE_BY_NAME.test(path) || (!path.includes("/") && MODEL_FILE.test(path));
  });

/** Within the folder that was chosen. */
const pathOf = (file: File) => file.webkitRelativePath.split("/").slice(1).join("/") || file.name;

/** Brings a folder to the server; `onProgress` is of its reading first, then of its sending. Gives its `source`. */
export async function uploadModel(
  project: string,
  name: string,
  files: File[],
  onProgress: (step: "reading" | "sending", share: number) => void,
  signal: AbortSignal,
): Promise<string> {
  const total = Math.max(1, sum(files));
  let read = 0;
  const announced: Schemas["AnnouncedFile"][] = [];
  for (const file of files) {
    const sha256 = await hashOf(file, (bytes) => onProgress("reading", (read += bytes) / total), signal);
    announced.push({ path: pathOf(file), sha256, size: file.size });
  }
  let upload = await data(
    api.POST("/api/v1/projects/{project}/model-uploads", {
      params: { path: { project } },
      body: { name, files: announced },
      signal,
    }),
  );
  const missing = files.filter((file) => upload.missing.includes(pathOf(file)));
  const most = Math.max(1, sum(missing));
  let sent = 0;
  for (const file of missing) {
    const before = sent;
    const path = `/api/v1/projects/${project}/model-uploads/${upload.hash}/files/${encodeURIComponent(pathOf(file))}`;
    upload = await send(path, file, (bytes) => onProgress("sending", (before + bytes) / most), signal);
    sent += file.size;
  }
  return upload.source;
}

const sum = (files: File[]) => files.reduce((bytes, file) => bytes + file.size, 0);

/** With progress, which fetch cannot tell. */
function send(
  path: string,
  file: File,
  onSent: (bytes: number) => void,
  signal: AbortSignal,
): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(unsafeHeaders())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onSent(Math.min(event.loaded, file.size));
    request.onerror = () =>
      reject(
        new Problem(
          0,
          "unreachable",
          "The upload was interrupted",
          `The server did not receive all of ${file.name}.`,
          "Try again: what has arrived is not sent twice.",
        ),
      );
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    request.onload = () => {
      const response = new Response(request.responseText, { status: request.status });
      if (response.ok) resolve(JSON.parse(request.responseText) as Upload);
      else void Problem.of(response).then(reject);
    };
    signal.addEventListener("abort", () => request.abort());
    const form = new FormData();
    form.append("file", file);
    request.send(form);
  });
}
