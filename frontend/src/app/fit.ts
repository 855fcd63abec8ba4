/** How well a name fits what was typed: 0 is equal, 1 begins with it, 2 has a word that does, 3 has it, 4 does not. */
function fit(name: string, wanted: string): number {
  const lower = name.toLowerCase();
  if (lower === wanted) return 0;
  if (lower.startsWith(wanted)) return 1;
  const at = lower.indexOf(wanted);
  if (at < 0) return 4;
  return /[^a-z0-9]/.test(lower[at - 1]!) ? 2 : 3;
}

/** The things whose names fit best first, otherwise as they were; without a text all as they were. */
export function byFit<T>(things: readonly T[], nameOf: (thing: T) => string, wanted: string): T[] {
  if (!wanted) return [...things];
  return things
    .map((thing) => ({ thing, fit: fit(nameOf(thing), wanted) }))
    .sort((one, other) => one.fit - other.fit)
    .map(({ thing }) => thing);
}
