import type { Schemas } from "../../api/client";

type Card = Schemas["RunKindCard"];
export type Kind = Pick<Card, "key" | "kind" | "title" | "about" | "inputs" | "for_data"> & {
  training: Pick<Schemas["MethodOut"], "recommended"> | null;
};

const LEARNS: Record<string, string> = {
  preferences: "Learn from preference pairs",
  instructions: "Learn from instructions",
  labelled: "Learn from answers with rewards",
  prompts: "Learn online, from prompts and rewards",
};
const OTHER_DATA = "Learn from other data";
const WORK = "Make, grade and compare";

function groupOf(kind: Kind): string {
  if (kind.kind !== "train") return WORK;
  const allowed = kind.inputs.find(({ name }) => name === "data")?.allowed ?? [];
  // What takes prompts draws its own answers, whatever else its rows hold.
  const data = allowed.includes("prompts") ? "prompts" : allowed[0];
  return LEARNS[data ?? ""] ?? OTHER_DATA;
}

/**
 * Kinds of runs by the data that they need, what is recommended first; those of a part of their name, abbreviation or
 * description only.
 */
export function kindGroups(kinds: Kind[], part: string): { title: string; kinds: Kind[] }[] {
  const words = part.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ key, title, about }: Kind) => {
    const text = `${key} ${key.replaceAll("_", " ")} ${title} ${about}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = kinds
    .filter(fits)
    .toSorted((a, b) => Number(!!b.training?.recommended) - Number(!!a.training?.recommended));
  return [...Object.values(LEARNS), OTHER_DATA, WORK]
    .map((title) => ({ title, kinds: found.filter((kind) => groupOf(kind) === title) }))
    .filter((group) => group.kinds.length > 0);
}

/** Kinds of runs that can take the dataset as it is. */
export function kindsFor<K extends Pick<Card, "for_data" | "needs_field"> & { training: object | null }>(
  kinds: readonly K[],
  dataset: Schemas["DatasetOut"],
): K[] {
  // Training reads no held-out row; others read all.
  const trainable = dataset.rows > dataset.held_out_rows;
  const fields = dataset.origin.fields as string[] | undefined;
  return kinds.filter((one) => {
    const needed = one.needs_field[dataset.kind];
    const whole = !needed || !fields || fields.includes(needed);
    return !!one.for_data[dataset.kind] && (trainable || !one.training) && whole;
  });
}
