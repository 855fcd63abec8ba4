/** Where the faults that the server found belong in a form. */
import type { ItemKind } from "./schemaFields";

/** What the server found wrong inside of a value, by the rest of the place: of `rules`, `rules.0.pattern` is `0.pattern`. */
export function faultsIn(faults: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(faults)
      .filter(([place]) => place.startsWith(`${name}.`))
      .map(([place, fault]) => [place.slice(name.length + 1), fault]),
  );
}

/** The faults of one item of a list, by field; "" is of the item as a whole. A place may name the item's kind. */
export function itemFaults(
  faults: Record<string, string>,
  at: number,
  kind: ItemKind,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [place, fault] of Object.entries(faults)) {
    const [item, ...path] = place.split(".");
    if (item !== String(at)) continue;
    if (path[0] === kind.kind) path.shift();
    const field = kind.fields.find(({ name }) => name === path.join("."));
    found[field?.name ?? ""] ??= fault;
  }
  return found;
}
