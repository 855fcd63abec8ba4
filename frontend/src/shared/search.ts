/** The URL's search parameters, as the pages need them. Invalid values count as absent. */

/** Widths of columns that a table can have, in whole pixels. */
export function widthsOf(given: unknown): Record<string, number> | undefined {
  if (!given || typeof given !== "object" || Array.isArray(given)) return undefined;
  const usable = Object.entries(given).flatMap(([name, width]) =>
    typeof width === "number" && Number.isFinite(width) ? [[name, fitting(width)] as const] : [],
  );
  return usable.length ? Object.fromEntries(usable) : undefined;
}

export const NARROWEST = 40;
export const WIDEST = 1000;

export const fitting = (width: number) => Math.round(Math.max(NARROWEST, Math.min(WIDEST, width)));

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

export interface RunsSearch {
  state?: string[];
  kind?: string[];
  pipeline?: string;
  filter?: string;
  /** A field, with `-` before it for the highest first. */
  sort?: string;
  /** See `columnsOf` of the list's layout. */
  column?: string[];
  /** Pixels of columns. */
  width?: Record<string, number>;
}

export function runsSearch(search: Record<string, unknown>): RunsSearch {
  return {
    state: listOf(search.state),
    kind: listOf(search.kind),
    pipeline: textOf(search.pipeline),
    filter: textOf(search.filter),
    sort: textOf(search.sort),
    column: listOf(search.column),
    width: widthsOf(search.width),
  };
}

const DATASET_VIEWS = ["statistics", "methods", "cleaning", "dropped", "versions", "pending"] as const;
const MARKED = ["flagged", "commented", "changed"] as const;
const CHANGES = ["added", "removed", "changed"] as const;

export interface DatasetSearch {
  view?: (typeof DATASET_VIEWS)[number];
  split?: "train" | "held_out";
  q?: string;
  /** Whether `q` is looked for within words as well. */
  match?: "part";
  source?: string;
  min?: number;
  max?: number;
  /** Several answers to one prompt. */
  group?: number;
  /** Rows with a flag, a comment or a pending change. */
  marked?: (typeof MARKED)[number];
  /** The row that is open. */
  row?: number;
  /** The dataset that this one is compared with, and what is shown of the difference. */
  before?: string;
  change?: (typeof CHANGES)[number];
}

export function datasetSearch(search: Record<string, unknown>): DatasetSearch {
  return {
    view: DATASET_VIEWS.find((view) => view === search.view),
    split: search.split === "train" || search.split === "held_out" ? search.split : undefined,
    q: textOf(search.q),
    match: search.match === "part" ? "part" : undefined,
    source: textOf(search.source),
    min: numberOf(search.min),
    max: numberOf(search.max),
    group: numberOf(search.group),
    marked: MARKED.find((marked) => marked === search.marked),
    row: numberOf(search.row),
    before: textOf(search.before),
    change: CHANGES.find((change) => change === search.change),
  };
}

const OUTCOMES = ["win", "tie", "loss", "disagree", "flip"] as const;
const LENGTHS = ["longer", "shorter", "similar"] as const;
const SORTS = ["score", "-score", "difference", "-difference"] as const;

/** Items of a report, as its API filters and sorts them. */
export interface ItemsSearch {
  a?: string;
  b?: string;
  source?: string;
  other?: string;
  outcome?: (typeof OUTCOMES)[number];
  category?: string;
  length?: (typeof LENGTHS)[number];
  /** By position where none is given. */
  sort?: (typeof SORTS)[number];
  /** Position of the one that is open. */
  item?: number;
}

export interface EvaluationSearch extends ItemsSearch {
  tab?: string;
  seen?: "yes" | "no";
  /** A verdict whose call is open. */
  call?: number;
  /** The entrant whose answer's trace is open, and which of its answers that is. */
  traced?: string;
  sample?: number;
  /** A judge's verdicts of one status. */
  judge?: string;
  status?: string;
  /** The form that asks people or a judge is open. */
  ask?: true;
}

export function evaluationSearch(search: Record<string, unknown>): EvaluationSearch {
  return {
    tab: textOf(search.tab),
    seen: search.seen === "yes" || search.seen === "no" ? search.seen : undefined,
    category: textOf(search.category),
    a: textOf(search.a),
    b: textOf(search.b),
    source: textOf(search.source),
    other: textOf(search.other),
    outcome: OUTCOMES.find((outcome) => outcome === search.outcome),
    length: LENGTHS.find((length) => length === search.length),
    sort: SORTS.find((sort) => sort === search.sort),
    item: numberOf(search.item),
    call: numberOf(search.call),
    traced: textOf(search.traced),
    sample: numberOf(search.sample),
    judge: textOf(search.judge),
    status: textOf(search.status),
    ask: search.ask === true || undefined,
  };
}
