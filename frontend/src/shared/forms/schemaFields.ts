/** A run kind's JSON Schema as form fields. */

type FieldType = "number" | "integer" | "boolean" | "choice" | "text" | "list" | "json";

export interface Field {
  name: string;
  type: FieldType;
  required: boolean;
  nullable: boolean;
  initial: unknown;
  choices: string[];
  description: string;
  source: string;
  /** What forms group it under; that of the field which holds it. */
  topic?: string;
  minimum?: number;
  maximum?: number;
  /** The field that holds this one: `lora.rank` is in `lora`. */
  group?: string;
  /** This one holds others and may be absent: a switch. */
  optionalGroup?: boolean;
  /** The field names one of these. */
  names?: "judge";
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
  topic?: string;
  names?: "judge";
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
        ...(node.names ? { names: node.names } : {}),
        ...(node.topic ? { topic: node.topic } : {}),
      };
      const items = only?.type === "array" && only.items ? itemKinds(only.items, root) : undefined;
      if (items) return [{ ...field, type: "list" as const, items }];
      if (group || !only?.properties) return [field];
      const inside = fieldsIn(only, root, name).map((one) => ({
        ...one,
        ...(node.topic && { topic: node.topic }),
      }));
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
