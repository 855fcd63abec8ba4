interface Named {
  name: string;
  pipeline?: { name: string } | null;
}

/** `demo-1.sft`, by which commands and recipes take a stage too; of a run of its own its name. */
export function runName(run: Named): string {
  return run.pipeline ? `${run.pipeline.name}.${run.name}` : run.name;
}
