/** A whole config as the texts of its fields, and back. */
import { read } from "./fieldValues";
import type { Field } from "./schemaFields";
import { show } from "./valueText";

/** What a form shows of a config that is there. */
export function textsOf(fields: Field[], config: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const holder = field.group ? config[field.group] : config;
      if (field.optionalGroup) return [[field.name, String((config[field.name] ?? null) !== null)]];
      if (typeof holder !== "object" || holder === null) return [];
      const value = (holder as Record<string, unknown>)[field.name.slice((field.group?.length ?? -1) + 1)];
      return value === undefined ? [] : [[field.name, show(value)]];
    }),
  );
}

/** Fields of a group that is switched off are not asked for. */
export function asked(fields: Field[], texts: Record<string, string>): Field[] {
  const off = new Set(
    fields
      .filter((field) => field.optionalGroup && (texts[field.name] ?? show(field.initial)) !== "true")
      .map((field) => field.name),
  );
  return fields.filter((field) => !field.group || !off.has(field.group));
}

/** Only what differs from the defaults, so a config shows what was chosen. */
export function changed(
  fields: Field[],
  texts: Record<string, string>,
): { values: Record<string, unknown>; errors: Record<string, string> } {
  const values: Record<string, unknown> = {};
  const errors: Record<string, string> = {};
  for (const field of asked(fields, texts)) {
    const result = read(field, texts[field.name] ?? show(field.initial));
    if ("error" in result) errors[field.name] = result.error;
    else if (result.value === undefined) continue;
    else if (field.optionalGroup) {
      if (result.value) values[field.name] = {};
      else if (field.initial) values[field.name] = null;
    } else if (JSON.stringify(result.value) !== JSON.stringify(field.initial ?? null) || field.required) {
      if (!field.group) values[field.name] = result.value;
      else
        values[field.group] = {
          ...(values[field.group] as object | undefined),
          [field.name.slice(field.group.length + 1)]: result.value,
        };
    }
  }
  return { values, errors };
}
