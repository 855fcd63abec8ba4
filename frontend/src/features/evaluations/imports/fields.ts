import type { Fields } from "../../../api/form";

/** A field that only one sort of file has: a text, the name of an entrant, or a switch. */
export interface FileField {
  name: string;
  type: "text" | "entrant" | "switch";
  label: string;
  description?: string;
  placeholder?: string;
}

/** What the server is sent of them: texts without the space around them, switches as a boolean. */
export function fieldsSent(fields: FileField[], typed: Record<string, string>): Fields {
  return Object.fromEntries(
    fields.map(({ name, type }) => {
      const text = (typed[name] ?? "").trim();
      return [name, type === "switch" ? text === "true" : text];
    }),
  );
}
