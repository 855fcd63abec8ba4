import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import type { Run, RunDetail } from "../runs/runs";
import { everything, Problem, type Schemas } from "../client";
import { readEvents } from "./stream";
import { sessionQuery } from "../accounts/session";
import { untilSeen, whileSeen } from "./visibility";

/** One event of a project's stream. */
export interface LiveEvent {
  id: number;
  type: string;
  payload: Record<string, unknown>;
}

type Connection = "live" | "reconnecting";
let connection: Connection = "live";
const listeners = new Set<() => void>();

function setConnection(next: Connection): void {
  if (next === connection) return;
  connection = next;
  for (const listener of listeners) listener();
}

/** Whether what is on the screen follows the server. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => connection,
  );
}

/** Follows a project's events for as long as the component is shown; continues where it was after a break. */
export function useLive(project: string, allowed: boolean): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!allowed) return;
    const stop = new AbortController();
    void follow(project, client, stop.signal);
    return () => stop.abort();
  }, [project, client, allowed]);
}

async function follow(project: string, client: QueryClient, stop: AbortSignal): Promise<void> {
  let last: number | null = null;
  let failures = 0;
  const take = (data: unknown) => {
    const event = data as LiveEvent;
    last = event.id;
    apply(project, client, event);
  };
  const open = () => {
    // What happened between the last answers and this connection is in no event that we shall see.
    // No one waits for those answers here: one that is slow must not hold the events back.
    if (last === null || failures) void client.invalidateQueries({ queryKey: everything(project) });
    failures = 0;
    setConnection("live");
  };
  while (!stop.aborted) {
    const watched = whileSeen();
    try {
      const signal = AbortSignal.any([stop, watched.signal]);
      const headers: HeadersInit = last === null ? {} : { "Last-Event-ID": String(last) };
      await readEvents(`/api/v1/projects/${project}/events`, { headers, signal }, take, open);
    } catch (error) {
      if (stop.aborted) return;
      if (watched.signal.aborted) {
        await untilSeen(stop);
        continue;
      }
      if (error instanceof Problem && error.status === 401) {
        await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      }
      failures += 1;
      if (failures > 1) setConnection("reconnecting");
      await new Promise((resolve) => setTimeout(resolve, Math.min(10_000, 500 * 2 ** failures)));
    } finally {
      watched.release();
    }
  }
}

/** What an event's domain is shown as, where it is not a run. */
const SHOWN_BY: Record<string, string[]> = {
  dataset: ["datasets", "waiting"],
  model: ["models", "model"],
  import: ["imports", "import", "waiting"],
  collection: ["collections", "waiting"],
  notice: ["notices"],
  playground: ["curves"],
  evaluation: ["evaluations", "evaluation", "rankings", "waiting"],
};

/** Where a run is shown that has changed its state or its place. Answers, rewards and verdicts are made by runs. */
const RUNS_SHOWN = [
  ...["runs", "run", "metrics", "logs", "pipelines", "pipeline", "benchmarks", "academic", "waiting"],
  ...["evaluations", "evaluation"],
];

const GATHERED_MS = 400;
const renewing = new WeakMap<QueryClient, Set<string>>();

/**
 * Asks again a moment later, once for all events until then and never while an answer is still on its way: asking again
 * drops that answer, so that events which come faster than answers would keep every answer from the page. A hundred
 * annotators move an evaluation a hundred times a second, and its report takes seconds to compute.
 */
function renewSoon(client: QueryClient, queryKey: string[]): void {
  const planned = renewing.get(client) ?? new Set<string>();
  renewing.set(client, planned);
  const name = JSON.stringify(queryKey);
  if (planned.has(name)) return;
  planned.add(name);
  const renew = () => {
    if (client.isFetching({ queryKey })) {
      setTimeout(renew, GATHERED_MS);
      return;
    }
    planned.delete(name);
    void client.invalidateQueries({ queryKey });
  };
  setTimeout(renew, GATHERED_MS);
}

/**
 * Changes what is cached where `change` gives something else, and nothing but the data: a full write would count as an
 * answer, which restarts the interval at which a query asks, and makes one that was outdated look fresh. Only what is
 * cached under `[project, kind, id or filters]` itself, not what is kept below that.
 */
function patch<T>(client: QueryClient, queryKey: string[], change: (known: T) => T): void {
  for (const query of client.getQueryCache().findAll({ queryKey })) {
    const known = query.state.data as T | undefined;
    if (known === undefined || query.queryKey.length !== 3) continue;
    const data = change(known);
    if (data !== known) query.setState({ ...query.state, data });
  }
}

/** The same list where nothing in it changed. */
function each<T>(items: T[], change: (item: T) => T): T[] {
  const changed = items.map(change);
  return changed.some((item, at) => item !== items[at]) ? changed : items;
}

/** An entrant, with its run's progress where the run is this one. */
function withProgress(entrant: Schemas["EntrantOut"], run: string, progress: Run["progress"]) {
  return entrant.run?.id === run ? { ...entrant, run: { ...entrant.run, progress } } : entrant;
}

/** Puts an event into what is cached: progress immediately, everything else by refetching. */
export function apply(project: string, client: QueryClient, event: LiveEvent): void {
  const run = event.payload.run_id as string | undefined;
  const renew = (keys: string[]) => {
    for (const key of keys) renewSoon(client, [project, key]);
  };
  if (event.type === "run.progress" && run) {
    showProgress(project, client, run, event.payload.progress as Run["progress"]);
  } else if (["run.state", "run.moved", "run.watched"].includes(event.type)) {
    renew(RUNS_SHOWN);
    renewSoon(client, ["queues"]);
    renewSoon(client, ["workers"]);
  } else {
    renew(SHOWN_BY[event.type.split(".")[0]!] ?? []);
  }
}

function showProgress(project: string, client: QueryClient, run: string, progress: Run["progress"]): void {
  const update = <T extends Run>(known: T): T => (known.id === run ? { ...known, progress } : known);
  patch<RunDetail>(client, [project, "run"], update);
  patch<Schemas["PipelineDetail"]>(client, [project, "pipeline"], (known) => {
    const runs = each(known.runs, update);
    return runs === known.runs ? known : { ...known, runs };
  });
  patch<Schemas["EvaluationDetail"]>(client, [project, "evaluation"], (known) => {
    const entrants = each(known.entrants, (one) => withProgress(one, run, progress));
    return entrants === known.entrants ? known : { ...known, entrants };
  });
  patch<{ pages: { items: Run[] }[] }>(client, [project, "runs"], (known) => {
    const pages = each(known.pages, (page) => {
      const items = each(page.items, update);
      return items === page.items ? page : { ...page, items };
    });
    return pages === known.pages ? known : { ...known, pages };
  });
}
