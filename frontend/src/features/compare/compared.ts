import type { RunDetail } from "../../api/runs/runs";

/** The chosen runs; `labels` distinguish them. */
export interface Compared {
  project: string;
  runs: RunDetail[];
  labels: string[];
}
