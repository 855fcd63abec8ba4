import { fitting, widthsOf } from "../../../shared/search";

/** Which columns the list of runs shows, in which order, and how wide. */
export interface TableLayout {
  /** Behind the name, which is always the first. */
  columns: string[];
  /** Pixels of the columns, `name` too, that were given a width; others take what they need. */
  widths: Record<string, number>;
}

/** Columns that do not depend on what the runs have logged, and their titles. */
export const OWN: Readonly<Record<string, string>> = {
  state: "State",
  key_metric: "Key metric",
  kind: "Kind",
  duration: "Duration",
  device_seconds: "Device time",
  created: "Created",
};
/** They are left out on a phone, which shows them below the name. */
export const WIDE: readonly string[] = ["key_metric", "kind", "duration", "device_seconds", "created"];
export const DEFAULT: TableLayout = { columns: Object.keys(OWN), widths: {} };

/** A list that begins with the name is all columns in their order. Another one has the settings, metrics and results. */
const FIRST = "name";
const BEFORE_OTHERS = ["state"];
const BEHIND_OTHERS = ["kind", "duration", "device_seconds", "created"];

export function columnsOf(asked: readonly string[] | undefined): string[] {
  if (!asked?.length) return DEFAULT.columns;
  if (asked[0] === FIRST) return [...new Set(asked.slice(1))];
  const others = [...new Set(asked)].filter((name) => !(name in OWN));
  return [...BEFORE_OTHERS, ...others, ...BEHIND_OTHERS];
}

/** What an address and a view keep of the columns; undefined for those that every list has by default. */
export const askedOf = (columns: readonly string[]): string[] | undefined =>
  columns.join("\n") === DEFAULT.columns.join("\n") ? undefined : [FIRST, ...columns];

export const isDefault = ({ columns, widths }: TableLayout) =>
  askedOf(columns) === undefined && Object.keys(widths).length === 0;

/** Settings, metrics and results, whose values have to be asked for. */
export const othersOf = (columns: readonly string[]) => columns.filter((name) => !(name in OWN));

/** The columns that were chosen: the others keep their places, and new ones come behind the settings, metrics and results. */
export function chosen(before: readonly string[], next: readonly string[]): string[] {
  const kept = before.filter((name) => next.includes(name));
  const added = next.filter((name) => !before.includes(name));
  const last = kept.findLastIndex((name) => !(name in OWN) || name === "key_metric" || name === "state");
  return [...kept.slice(0, last + 1), ...added, ...kept.slice(last + 1)];
}

/** One column in the place of another, and those between them moved by one. */
export function moved(columns: readonly string[], column: string, to: string): string[] {
  const [from, place] = [columns.indexOf(column), columns.indexOf(to)];
  if (from < 0 || place < 0) return [...columns];
  return columns.toSpliced(from, 1).toSpliced(place, 0, column);
}

/** Undefined lets the column take what it needs again. */
export function withWidth(
  widths: Readonly<Record<string, number>>,
  column: string,
  width: number | undefined,
): Record<string, number> {
  const others = Object.entries(widths).filter(([name]) => name !== column);
  return Object.fromEntries(width === undefined ? others : [...others, [column, fitting(width)]]);
}

/** The columns as a file has them: what the page shows as the kind of a run is its kind or its method. */
export const fileColumns = (columns: readonly string[]) =>
  columns.flatMap((name) => (name === "kind" ? ["kind", "method"] : [name]));

/** What was kept in the browser, as far as it is usable; null for nothing. */
export function readLayout(text: string | undefined): TableLayout | null {
  try {
    const { columns, widths } = JSON.parse(text ?? "") as { columns?: unknown; widths?: unknown };
    if (!Array.isArray(columns) || !columns.every((one): one is string => typeof one === "string"))
      return null;
    return { columns: [...new Set(columns)], widths: widthsOf(widths) ?? {} };
  } catch {
    return null;
  }
}
