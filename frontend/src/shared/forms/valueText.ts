/** Values of a config as people read them. */

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
