import type { Schemas } from "../../api/client";

export type Fault = Schemas["RecipeFault"];

/** What is wrong with the value that `--set name=` changes: an input, a stage's field, or something inside of it. */
export function faultOf(faults: Fault[], name: string): Fault | undefined {
  const places = [name, `inputs.${name}`, `stages.${name}`];
  return faults.find((fault) =>
    places.some((place) => fault.field === place || fault.field.startsWith(`${place}.`)),
  );
}
