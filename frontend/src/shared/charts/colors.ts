/** Colours of lines in a chart, told apart in light and dark. */
const COLORS = ["#1098ad", "#f08c00", "#7048e8", "#e03131", "#2f9e44", "#c2255c", "#1971c2", "#868e96"];

/** The colour of a line by its place; they repeat. */
export function colorOf(line: number): string {
  return COLORS[line % COLORS.length]!;
}

/** Lines whose colours repeat are told apart by their dashes. */
export function dashOf(line: number): number[] | undefined {
  return [undefined, [8, 4], [3, 3]][Math.floor(line / COLORS.length) % 3];
}

/**
 * A place among the colours for each of `ids`: those that had one keep it, and others take the first that is free, so
 * that no line changes its colour when another one comes or goes.
 */
export function colorPlaces(
  before: ReadonlyMap<string, number>,
  ids: readonly string[],
): Map<string, number> {
  const places = new Map(ids.flatMap((id) => (before.has(id) ? [[id, before.get(id)!]] : [])));
  const taken = new Set(places.values());
  for (const id of ids) {
    if (places.has(id)) continue;
    let place = 0;
    while (taken.has(place)) place += 1;
    taken.add(place);
    places.set(id, place);
  }
  return places;
}
