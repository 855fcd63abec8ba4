import { modelFiles } from "../../api/models/modelUploads";
import type { ModelFacts } from "../../api/models/fit";

const GGUF = ".gguf";

export interface FolderFacts {
  name: string;
  /** The files that are sent; only the chosen one of several GGUF files, and none before the choice. */
  files: File[];
  /** GGUF files, where they are the model. */
  gguf: File[];
  /** What the server weighs; null for a GGUF file, whose settings only a worker reads. */
  facts: ModelFacts | null;
  labels: string[];
  /** What keeps the folder from being a model, if anything. */
  fault: string | null;
}

/** What can be known of a model folder before it is sent. */
export async function folderFacts(all: File[]): Promise<FolderFacts> {
  const every = modelFiles(all);
  const files = every.filter((file) => !file.name.endsWith(GGUF));
  const weights = files.filter((file) => file.name.endsWith(".safetensors"));
  const config = await json(files, "config.json");
  const name = all[0]?.webkitRelativePath.split("/")[0] || "model";
  const gguf =
    config && weights.length
      ? []
      : every
          .filter((file) => file.name.endsWith(GGUF))
          .sort((one, other) => one.name.localeCompare(other.name));
  if (gguf.length) {
    return { name, files: gguf.length === 1 ? gguf : [], gguf, facts: null, labels: [], fault: null };
  }
  const tokenizer = await json(files, "tokenizer_config.json");
  const architecture = Array.isArray(config?.architectures) ? String(config.architectures[0]) : null;
  const labels = architecture?.endsWith("SequenceClassification")
    ? Object.values(config?.id2label ?? {})
    : [];
  return {
    name,
    files,
    gguf,
    facts: {
      config: config ?? {},
      parameters: 0,
      files: files.length,
      size: sum(files),
      weights: sum(weights),
      template: files.some((file) => file.name === "chat_template.jinja") || !!tokenizer?.chat_template,
      licence: await licenceOf(all),
      quantised: [],
    },
    labels: labels.map(String),
    fault: !config
      ? "It has no config.json that can be read."
      : weights.length
        ? null
        : "It has no .safetensors file and no .gguf file; pickled weights are not taken.",
  };
}

const sum = (files: File[]) => files.reduce((bytes, file) => bytes + file.size, 0);

async function json(files: File[], name: string): Promise<Record<string, unknown> | null> {
  try {
    const found: unknown = JSON.parse((await files.find((file) => file.name === name)?.text()) ?? "null");
    return typeof found === "object" ? (found as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

/** From the model card's front matter, or the name of a licence file. */
async function licenceOf(all: File[]): Promise<string | null> {
  const top = all.filter((file) => file.webkitRelativePath.split("/").length <= 2);
  const card = await top
    .find((file) => file.name === "README.md")
    ?.slice(0, 10_000)
    .text();
  const named = card?.match(/^---\n[\s\S]*?^license(?:_name)?: *["']?([^\s"']+)/m)?.[1];
  return named ?? top.find((file) => /^licen[cs]e/i.test(file.name))?.name ?? null;
}
