import { show } from "../forms/valueText";

/** What a run can be put into a group by. */
export interface RunTraits {
  /** Without its pipeline. */
  name: string;
  method: string | null;
  pipeline: string | null;
  tags: readonly string[];
  config: Record<string, unknown>;
}

export interface Grouping {
  /** `all`, `method`, `pipeline`, `name`, `tag`, or `setting.` and a name such as `lora.rank`. */
  by: string;
  title: string;
}

const OF_RUNS: readonly (Grouping & { groups: (run: RunTraits) => string[] })[] = [
  { by: "method", title: "Method", groups: ({ method }) => [method ?? "no method"] },
  { by: "tag", title: "Tag", groups: ({ tags }) => (tags.length ? [...tags] : ["no tag"]) },
  { by: "name", title: "Name", groups: ({ name }) => [name] },
  { by: "pipeline", title: "Pipeline", groups: ({ pipeline }) => [pipeline ?? "single runs"] },
];
const SETTING = "setting.";
/** The kind of a run; not how it is set. */
const KIND = ["run", "method"];

/**
 * The ways to put these runs into groups: all of them into one, or by a trait that differs between some and is the same
 * of others. With a group for each run there would be nothing to average.
 */
export function groupingsOf(runs: readonly RunTraits[]): Grouping[] {
  const settings = [...new Set(runs.flatMap(({ config }) => Object.keys(leavesOf(config))))].sort();
  const found = [
    ...OF_RUNS.map(({ by, title }) => ({ by, title })),
    ...settings.filter((name) => !KIND.includes(name)).map((name) => ({ by: SETTING + name, title: name })),
  ].filter(({ by }) => {
    const groups = groupsOf(runs, by).size;
    return groups > 1 && groups < runs.length;
  });
  return [{ by: "all", title: "All runs together" }, ...found];
}

/** The places of the runs in each group, by its label, in the order of the labels. A run with two tags is in both. */
export function groupsOf(runs: readonly RunTraits[], by: string): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  runs.forEach((run, at) => {
    for (const label of labelsOf(run, by)) groups.set(label, [...(groups.get(label) ?? []), at]);
  });
  const inOrder = new Intl.Collator("en", { numeric: true });
  return new Map([...groups].sort(([a], [b]) => numberOf(a) - numberOf(b) || inOrder.compare(a, b)));
}

/** Whether a group has runs of several methods, whose metrics of one name may be different figures. */
export function mixesMethods(runs: readonly RunTraits[], by: string): boolean {
  return [...groupsOf(runs, by).values()].some(
    (at) => new Set(at.map((place) => runs[place]!.method)).size > 1,
  );
}

function labelsOf(run: RunTraits, by: string): string[] {
  if (by === "all") return ["all"];
  const of = OF_RUNS.find((one) => one.by === by);
  if (of) return of.groups(run);
  const name = by.slice(SETTING.length);
  const value = leavesOf(run.config)[name];
  return [`${name} = ${value === undefined || value === null ? "none" : show(value)}`];
}

/** `lr = 0.0001` comes before `lr = 0.001`; what has no number is in the order of its letters. */
function numberOf(label: string): number {
  const value = Number(label.split(" = ")[1]);
  return Number.isFinite(value) ? value : 0;
}

/** `{lora: {rank: 8}}` as `{"lora.rank": 8}`. */
function leavesOf(tree: Record<string, unknown>, above = ""): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tree).flatMap(([name, value]) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.entries(leavesOf(value as Record<string, unknown>, `${above}${name}.`))
        : [[above + name, value]],
    ),
  );
}
