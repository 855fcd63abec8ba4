import type { SampleViewQuery } from "../../../api/views";
import type { DatasetSearch } from "../../../shared/search";

const ALL: SampleViewQuery = { match: "words" };

/** Views that every project has. */
export const OWN_VIEWS: readonly [string, SampleViewQuery][] = [
  ["All rows", ALL],
  ["Flagged", { ...ALL, marked: "flagged" }],
  ["Commented", { ...ALL, marked: "commented" }],
  ["Changed", { ...ALL, marked: "changed" }],
];

/** What the address filters by, as a view keeps it. */
export function viewOf({ q, match, split, source, min, max, marked }: DatasetSearch): SampleViewQuery {
  return { q, match: match ?? "words", split, source, reward_min: min, reward_max: max, marked };
}

/** The address of a view; what it does not filter is cleared. */
export function searchOf(view: SampleViewQuery): Partial<DatasetSearch> {
  return {
    q: view.q ?? undefined,
    match: view.match === "part" ? "part" : undefined,
    split: view.split ?? undefined,
    source: view.source ?? undefined,
    min: view.reward_min ?? undefined,
    max: view.reward_max ?? undefined,
    marked: view.marked ?? undefined,
  };
}

/** `"tea" anywhere, held out, flagged`. */
export function viewWords(view: SampleViewQuery): string {
  const { reward_min: min, reward_max: max } = view;
  const parts = [
    view.q && `"${view.q}"${view.match === "part" ? " anywhere" : ""}`,
    view.split?.replace("_", " "),
    view.source && `from ${view.source}`,
    typeof min === "number" && `reward from ${min}`,
    typeof max === "number" && `reward to ${max}`,
    view.marked,
  ];
  return parts.filter(Boolean).join(", ") || "all rows";
}
