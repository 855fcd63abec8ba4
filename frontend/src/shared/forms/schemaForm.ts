/** A run kind's JSON Schema as form fields, and what a person typed as values again. */

export type FieldType = "number" | "integer" | "boolean" | "choice" | "text" | "list" | "json";

export interface Field {
  name: string;
  type: FieldType;
  required: boolean;
  nullable: boolean;
  initial: unknown;
  choices: string[];
  description: string;
  source: string;
  minimum?: number;
  maximum?: number;
  /** The field that holds this one: `lora.rank` is in `lora`. */
  group?: string;
  /** This one holds others and may be absent: a switch. */
  optionalGroup?: boolean;
  /** What an item of a list may be. */
  items?: ItemKind[];
}

/**
 * One form that an item of a list may have. `key` names the field in which items say which one they are, and `kind` what
 * they say there; both are empty where all items are alike. An item that is not an object has one field without a name.
 */
export interface ItemKind {
  key: string;
  kind: string;
  description: string;
  fields: Field[];
}

interface Node {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Node[];
  $ref?: string;
  default?: unknown;
  description?: string;
  source?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  properties?: Record<string, Node>;
  required?: string[];
  $defs?: Record<string, Node>;
  items?: Node;
  oneOf?: Node[];
  discriminator?: { propertyName: string };
}

/**
 * Fields in the order of the schema. Constants (`run`, `method`) are fixed by the kind and left out. The fields of an
 * object follow it, by dotted names; an object that may be absent is a switch before them.
 */
export function fieldsOf(schema: unknown): Field[] {
  const root = schema as Node;
  return fieldsIn(root, root);
}

function fieldsIn(holder: Node, root: Node, group?: string): Field[] {
  return Object.entries(holder.properties ?? {})
    .filter(([name, node]) => node.const === undefined && (group || name !== "run"))
    .flatMap(([short, node]) => {
      const name = group ? `${group}.${short}` : short;
      const options = (node.anyOf ?? [node]).map((option) => resolve(option, root));
      const real = options.filter((option) => option.type !== "null");
      const only = real.length === 1 ? real[0]! : undefined;
      const bounds = { ...only, ...node };
      const nullable = options.some((option) => option.type === "null");
      const field: Field = {
        name,
        type: only ? typeOf(only) : "json",
        required: holder.required?.includes(short) ?? false,
        nullable,
        initial: node.default,
        choices: (only?.enum ?? []).map(String),
        description: node.description ?? only?.description ?? "",
        source: node.source ?? "",
        minimum: bounds.minimum ?? bounds.exclusiveMinimum,
        maximum: bounds.maximum ?? bounds.exclusiveMaximum,
        ...(group ? { group } : {}),
      };
      const items = only?.type === "array" && only.items ? itemKinds(only.items, root) : undefined;
      if (items) return [{ ...field, type: "list" as const, items }];
      if (group || !only?.properties) return [field];
      const inside = fieldsIn(only, root, name);
      const off = (node.default ?? null) === null;
      return nullable
        ? [{ ...field, type: "boolean" as const, initial: !off, optionalGroup: true }, ...inside]
        : inside;
    });
}

/** None for items that only JSON can say. */
function itemKinds(node: Node, root: Node): ItemKind[] | undefined {
  const key = node.discriminator?.propertyName ?? "";
  const kinds = (key ? (node.oneOf ?? []) : [node]).map((one): ItemKind => {
    const item = resolve(one, root);
    const fields = item.properties
      ? fieldsIn(item, root)
      : fieldsIn({ properties: { "": item }, required: [""] }, root);
    const kind = key ? String(item.properties?.[key]?.const ?? "") : "";
    return { key, kind, description: item.description ?? "", fields };
  });
  const simple = kinds.every((one) => one.fields.every((field) => !["json", "list"].includes(field.type)));
  return simple && kinds.some((one) => one.fields.length || one.kind) ? kinds : undefined;
}

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

function resolve(node: Node, root: Node): Node {
  const name = node.$ref?.split("/").at(-1);
  return name ? { ...root.$defs?.[name], ...node } : node;
}

function typeOf(node: Node): FieldType {
  if (node.enum) return "choice";
  if (node.type === "number" || node.type === "integer" || node.type === "boolean") return node.type;
  // A number or a text, such as a condition: the server reads both from a text.
  const text = node.type === "string" || node.anyOf?.some((one) => one.type === "string");
  return text ? "text" : "json";
}

/** As a person reads and edits it: 5e-6 stays 5e-6, null is empty. */
export function show(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number")
    return Math.abs(value) > 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** For those who only read: an item of a list a line, the fields of an object by name; what is not set is left out. */
export function inWords(value: unknown): string {
  if (value === undefined || value === null) return "none";
  if (Array.isArray(value)) {
    const nested = value.some((item) => typeof item === "object" && item !== null);
    return value.map(inWords).join(nested ? "\n" : ", ") || "none";
  }
  if (typeof value !== "object") return show(value) || "none";
  const { kind, ...others } = value as Record<string, unknown>;
  const fields = Object.entries(others)
    .filter(([, one]) => one !== null && one !== undefined)
    .map(([name, one]) => `${name} ${typeof one === "object" ? `(${inWords(one)})` : show(one)}`)
    .join(", ");
  return [kind, fields].filter(Boolean).map(String).join(": ") || "defaults";
}

/** What the server found wrong inside of a value, by the rest of the place: of `rules`, `rules.0.pattern` is `0.pattern`. */
export function faultsIn(faults: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(faults)
      .filter(([place]) => place.startsWith(`${name}.`))
      .map(([place, fault]) => [place.slice(name.length + 1), fault]),
  );
}

/** Of one item of a list, by the names of its fields; "" is of the item as a whole. A place may name the item's kind. */
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
