/** What of a waiting run decides its place. */
export interface Place {
  id: string;
  priority: number;
  /** Whether the person may move it. */
  movable: boolean;
}

/** One request: a run goes to the front or the back of the runs of a priority. */
export interface Step {
  id: string;
  priority?: number;
  place: "first" | "last";
}

/** The list with the item of index `from` at index `to`. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const rest = list.filter((_, at) => at !== from);
  return [...rest.slice(0, to), list[from]!, ...rest.slice(to)];
}

/** The priority with which a run fits between its new neighbours, changed as little as it can be. */
export function priorityAt(rest: readonly Place[], at: number, own: number): number {
  const highest = rest[at - 1]?.priority ?? Infinity;
  const lowest = rest[at]?.priority ?? -Infinity;
  return Math.min(Math.max(own, lowest), highest);
}

/**
 * The requests that bring the run of index `from` to index `to`, in their order; null when none can.
 *
 * `queue` is in the order in which workers take it: by priority, then by place. The API moves a run only to the front
 * or the back of its priority, so a place in the midst takes several: either all that shall come before go to the
 * front, the last of them first, or all that shall come after go to the back. The shorter way wins. `complete`: whether
 * `queue` holds all runs that wait; otherwise only who is moved to its end may go to the back.
 */
export function plan(queue: readonly Place[], from: number, to: number, complete = true): Step[] | null {
  const run = queue[from];
  if (!run?.movable) return null;
  const rest = queue.filter((_, at) => at !== from);
  const priority = priorityAt(rest, to, run.priority);
  const changed = priority === run.priority ? {} : { priority };
  const wanted = moved(queue, from, to).filter((one) => one === run || one.priority === priority);
  const now = new Map(queue.map((one, at) => [one, at]));
  const stays = (one: Place | undefined) => one !== undefined && one.priority === priority;
  const inOrder = (at: number) =>
    stays(wanted[at - 1]) && stays(wanted[at]) && now.get(wanted[at - 1]!)! < now.get(wanted[at]!)!;

  // The longest end of the wanted order that is already right, and the longest beginning.
  let end = stays(wanted.at(-1)) ? wanted.length - 1 : wanted.length;
  while (end > 0 && inOrder(end)) end -= 1;
  let start = stays(wanted[0]) ? 1 : 0;
  while (start > 0 && start < wanted.length && inOrder(start)) start += 1;

  const ways: { runs: Place[]; place: Step["place"] }[] = [
    { runs: wanted.slice(0, end).reverse(), place: "first" },
  ];
  const goesOn = !complete && wanted.at(-1)!.priority === queue.at(-1)!.priority;
  if (!goesOn || to === rest.length) ways.push({ runs: wanted.slice(start), place: "last" });
  const best = ways
    .filter(({ runs }) => runs.every((one) => one.movable))
    // The one of two equally short ways that moves the run itself.
    .sort(
      (a, b) => a.runs.length - b.runs.length || Number(a.runs[0] !== run) - Number(b.runs[0] !== run),
    )[0];
  return best
    ? best.runs.map((one) => ({ id: one.id, place: best.place, ...(one === run ? changed : {}) }))
    : null;
}
