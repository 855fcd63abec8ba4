/** What an endpoint that takes a file sees: the fields that say something. */
export function form(fields: Record<string, string | boolean | File | null | undefined>): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === "") continue;
    made.append(name, value instanceof File ? value : String(value));
  }
  return made;
}

export type Fields = Parameters<typeof form>[0];
