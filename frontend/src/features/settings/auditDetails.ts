/** An audit entry's details as facts for people: its own fields first, then nested ones. */
export function factsOf(details: Record<string, unknown>): { name: string; value: string }[] {
  const entries = Object.entries(details).filter(([, value]) => !isEmpty(value));
  const plain = entries.filter(([, value]) => !isRecord(value));
  // The smallest first: the two inputs of a run say more than its thirty settings.
  const nested = entries
    .filter((entry): entry is [string, Record<string, unknown>] => isRecord(entry[1]))
    .sort(([, a], [, b]) => Object.keys(a).length - Object.keys(b).length);
  return [
    ...plain.map(([name, value]) => ({ name: words(name), value: text(value) })),
    ...nested.flatMap(([name, inner]) =>
      factsOf(inner).map((fact) => ({ name: `${words(name)} · ${fact.name}`, value: fact.value })),
    ),
  ];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return (
    value === null || value === "" || (typeof value === "object" && !Object.keys(value as object).length)
  );
}

function words(name: string): string {
  return name.replaceAll("_", " ");
}

function text(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(text).join(", ");
  if (isRecord(value))
    return factsOf(value)
      .map((fact) => `${fact.name} ${fact.value}`)
      .join(", ");
  return String(value);
}
