import type { Field } from "../../shared/forms/schemaFields";

export interface Topic {
  name: string;
  fields: Field[];
}

/** The fields by topic, in the order in which their topics occur first. */
export function topicsOf(fields: readonly Field[]): Topic[] {
  const byName = new Map<string, Field[]>();
  for (const field of fields) {
    const name = field.topic ?? "Method";
    byName.set(name, [...(byName.get(name) ?? []), field]);
  }
  return [...byName].map(([name, some]) => ({ name, fields: some }));
}

/** Whether each word that was typed is in the field's name or description. */
export function isFound(field: Field, typed: string): boolean {
  const text = `${field.name} ${field.name.replaceAll(/[._]/g, " ")} ${field.description}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
