import { asked, textsOf } from "../../shared/forms/configValues";
import type { Field } from "../../shared/forms/schemaFields";
import { show } from "../../shared/forms/valueText";

/** `--set` reads YAML: this is a setting without a value. */
const NONE = "null";

/** What a stage's fields show: what was typed, else what the recipe and the defaults give. A field that was emptied
 * stays empty. */
export function shownTexts(
  fields: Field[],
  config: Record<string, unknown>,
  typed: Record<string, string>,
): Record<string, string> {
  const texts = textsOf(fields, config);
  for (const { name, optionalGroup } of fields) {
    const text = typed[name];
    if (text === undefined || (optionalGroup && text === "")) continue;
    texts[name] = optionalGroup ? String(text !== NONE) : text === NONE ? "" : text;
  }
  return texts;
}

/** The text that `--set` gets for a field; empty leaves the recipe's own value. */
export function setText(field: Field, text: string): string {
  if (field.optionalGroup) return text === "true" ? "{}" : NONE;
  return text === "" && field.nullable ? NONE : text;
}

/** The names of the fields to show first: those that the recipe or the person set, then the main ones of the kind. */
export function shownFirst(
  fields: Field[],
  texts: Record<string, string>,
  form: readonly string[],
  typed: readonly string[],
): string[] {
  const isSet = ({ name, initial }: Field) =>
    typed.includes(name) || (texts[name] ?? show(initial)) !== show(initial);
  const isMain = (field: Field) => field.required || form.includes(field.group ?? field.name);
  const first = asked(fields, texts).filter(isSet);
  const main = fields.filter((field) => !first.includes(field) && isMain(field));
  return [...first, ...main].map(({ name }) => name);
}
