import type { Schemas } from "../../api/client";

type Kind = Schemas["RunKindOut"];
type Slot = Kind["inputs"][number];

/** Where the rows go that a method learns from. */
export const DATA = "data";
/** Where a run's policy goes, and the field of its config that names an endpoint in its place. */
export const MODEL = "model";
export const ENDPOINT = "endpoint";

/** Whether the run takes an endpoint in the place of its model. */
export function asksEndpoints(schema: Kind): boolean {
  return ENDPOINT in ((schema.config_schema.properties ?? {}) as object);
}

/** Where a dataset or model goes that a link brought along. */
export function firstSlot(schema: Kind, type: "dataset" | "model"): string {
  const slot = schema.inputs.find((one) => one.type === type);
  return slot ? keysOf(slot, {})[0]! : type;
}

/** The places of a slot: one, or where it takes many all that are used and one more. */
export function keysOf(slot: Pick<Slot, "name" | "many">, given: Record<string, string>): string[] {
  if (!slot.many) return [slot.name];
  const used = Object.keys(given).filter((key) => given[key] && key.startsWith(`${slot.name}.`)).length;
  return Array.from({ length: used + 1 }, (_, at) => `${slot.name}.${at}`);
}

/** The slots that must be filled and are not, where the config does not write them out. */
export function missingOf(schema: Kind, given: Record<string, string>, config: object): Slot[] {
  const written = (slot: Slot) => !!slot.or_field && slot.or_field in config;
  return schema.inputs.filter(
    (slot) => (slot.required || slot.or_field) && !given[keysOf(slot, {})[0]!] && !written(slot),
  );
}
