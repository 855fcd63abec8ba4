import { inWords } from "../../shared/forms/valueText";

/**
 * Settings of several runs side by side; by default only those that are not the same everywhere. `identities`: what
 * decides that instead of the value, where the same thing has several names.
 */
export function differences(
  configs: Record<string, unknown>[],
  all = false,
  identities: Record<string, string>[] = [],
): { name: string; values: string[]; differs: boolean }[] {
  // The database forgets the order in which settings were written.
  const names = [...new Set(configs.flatMap((config) => Object.keys(config)))].sort();
  return names
    .map((name) => {
      const values = configs.map((config) => (name in config ? inWords(config[name]) : "–"));
      const compared = values.map((value, at) => identities[at]?.[name] ?? value);
      return { name, values, differs: new Set(compared).size > 1 };
    })
    .filter((row) => all || row.differs);
}
