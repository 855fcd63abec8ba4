/** The URL's search parameters, as the pages need them. Invalid values count as absent. */

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

export function listOf(value: unknown): string[] | undefined {
  const list = (Array.isArray(value) ? value : [value]).filter(
    (item): item is string => typeof item === "string" && !!item,
  );
  return list.length ? list : undefined;
}

function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && value.trim() ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

const DATASET_VIEWS = ["statistics", "methods", "cleaning", "dropped"] as const;

export interface DatasetSearch {
  view?: (typeof DATASET_VIEWS)[number];
  split?: "train" | "held_out";
  q?: string;
  source?: string;
  min?: number;
  max?: number;
  /** Several answers to one prompt. */
  group?: number;
  /** The row that is open. */
  row?: number;
}

export function datasetSearch(search: Record<string, unknown>): DatasetSearch {
  return {
    view: DATASET_VIEWS.find((view) => view === search.view),
    split: search.split === "train" || search.split === "held_out" ? search.split : undefined,
    q: textOf(search.q),
    source: textOf(search.source),
    min: numberOf(search.min),
    max: numberOf(search.max),
    group: numberOf(search.group),
    row: numberOf(search.row),
  };
}

export interface EvaluationSearch {
  tab?: string;
  seen?: "yes" | "no";
  category?: string;
  /** A judge's verdicts of one status. */
  judge?: string;
  status?: string;
}

export function evaluationSearch(search: Record<string, unknown>): EvaluationSearch {
  return {
    tab: textOf(search.tab),
    seen: search.seen === "yes" || search.seen === "no" ? search.seen : undefined,
    category: textOf(search.category),
    judge: textOf(search.judge),
    status: textOf(search.status),
  };
}
