/** What a person typed into a field, or into an item of a list, as a value again. */
import type { Field, ItemKind } from "./schemaFields";
import { show } from "./valueText";

/** The value, or what is wrong with the text. */
export function read(field: Field, text: string): { value: unknown } | { error: string } {
  const trimmed = text.trim();
  if (trimmed === "") {
    if (field.nullable) return { value: null };
    // Without a default in the schema the server makes one: the field is left out.
    return field.required ? { error: "needed" } : { value: field.initial };
  }
  if (field.type === "number" || field.type === "integer") {
    const value = Number(trimmed);
    if (!Number.isFinite(value)) return { error: "not a number" };
    if (field.type === "integer" && !Number.isInteger(value)) return { error: "not a whole number" };
    if (field.minimum !== undefined && value < field.minimum) return { error: `at least ${field.minimum}` };
    if (field.maximum !== undefined && value > field.maximum) return { error: `at most ${field.maximum}` };
    return { value };
  }
  if (field.type === "boolean") return { value: trimmed === "true" };
  if (field.type === "list") {
    const items = itemsOf(trimmed);
    const wrong = items.findIndex((item) => Object.keys(itemErrors(field, item)).length > 0);
    return wrong < 0 ? { value: items } : { error: `item ${wrong + 1} is not complete` };
  }
  if (field.type === "json") {
    try {
      return { value: JSON.parse(trimmed) as unknown };
    } catch {
      return { error: "not JSON" };
    }
  }
  return { value: trimmed };
}

/** The items of a list from its text; what is not a list, as from an old link, becomes an empty one. */
export function itemsOf(text: string): unknown[] {
  try {
    const found = JSON.parse(text) as unknown;
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

/** Which of the forms of a list's items this one has. */
export function kindOf(field: Field, item: unknown): ItemKind {
  const kinds = field.items ?? [];
  return kinds.find((one) => one.key && (item as Record<string, unknown>)[one.key] === one.kind) ?? kinds[0]!;
}

/** A new item: nothing but its kind. */
export function newItem(kind: ItemKind): unknown {
  if (kind.fields[0]?.name === "") return "";
  return kind.key ? { [kind.key]: kind.kind } : {};
}

/** The text of a field of an item. */
export function itemText(field: Field, item: unknown): string {
  if (field.name === "") return show(item);
  const value = (item as Record<string, unknown>)[field.name];
  return show(value === undefined ? field.initial : value);
}

/** The item with what someone typed into one of its fields; what cannot be read yet stays as it was typed. */
export function withText(field: Field, item: unknown, text: string): unknown {
  const result = read(field, text);
  const value = "value" in result ? result.value : text;
  if (field.name === "") return value;
  const others = Object.fromEntries(Object.entries(item as object).filter(([name]) => name !== field.name));
  const isDefault =
    "value" in result && JSON.stringify(value ?? null) === JSON.stringify(field.initial ?? null);
  return isDefault && !field.required ? others : { ...others, [field.name]: value };
}

/** What is wrong with an item, by the names of its fields. */
export function itemErrors(field: Field, item: unknown): Record<string, string> {
  const found: Record<string, string> = {};
  for (const one of kindOf(field, item).fields) {
    const result = read(one, itemText(one, item));
    if ("error" in result) found[one.name] = result.error;
  }
  return found;
}
