/** What stands in the address, as the pages want it. Anything odd there is as if it were absent. */

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

export function listOf(value: unknown): string[] | undefined {
  const list = (Array.isArray(value) ? value : [value]).filter(
    (item): item is string => typeof item === "string" && !!item,
  );
  return list.length ? list : undefined;
}
