import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import type { Run, RunDetail } from "./runs";
import { Problem, type Schemas } from "./client";

/** One event of a project's stream. */
export interface LiveEvent {
  id: number;
  type: string;
  payload: Record<string, unknown>;
}

/** Splits a stream of server-sent events. Feed it text as it comes; it calls back with each event's data and name. */
export class EventParser {
  private rest = "";

  constructor(private readonly onEvent: (data: unknown, name: string) => void) {}

  feed(text: string): void {
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data");
      if (data) this.onEvent(JSON.parse(data), field("event") ?? "message");
    }
  }
}

/** Reads a stream to its end. Throws a `Problem` when the server refuses it. */
export async function readEvents(
  url: string,
  options: RequestInit,
  onEvent: (data: unknown, name: string) => void,
  onOpen?: () => Promise<void> | void,
): Promise<void> {
  const response = await fetch(url, options);
  if (!response.ok || !response.body) throw await Problem.of(response);
  await onOpen?.();
  const events = new EventParser(onEvent);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    events.feed(value);
  }
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

/** Follows a project's events for as long as the component is shown; goes on where it was after a break. */
export function useLive(project: string, allowed: boolean): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!allowed) return;
    const stop = new AbortController();
    void follow(project, client, stop.signal);
    return () => stop.abort();
  }, [project, client, allowed]);
}

// A browser keeps six connections to a server for all of its tabs together: one that nobody looks at lets its own go.
const HIDDEN_MS = 15_000;

const seen = () => document.visibilityState === "visible";

/** Aborts once the page has been hidden for a while. `release` it. */
export function whileSeen(): { signal: AbortSignal; release: () => void } {
  const leave = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (!seen()) timer = setTimeout(() => leave.abort(), HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return {
    signal: leave.signal,
    release: () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    },
  };
}

/** Until somebody looks at the page, or `stop`. */
export async function untilSeen(stop: AbortSignal): Promise<void> {
  if (seen() || stop.aborted) return;
  await new Promise<void>((resolve) => {
    const look = () => {
      if (!seen() && !stop.aborted) return;
      document.removeEventListener("visibilitychange", look);
      stop.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    stop.addEventListener("abort", look);
  });
}

async function follow(project: string, client: QueryClient, stop: AbortSignal): Promise<void> {
  let last: number | null = null;
  let failures = 0;
  const take = (data: unknown) => {
    const event = data as LiveEvent;
    last = event.id;
    apply(project, client, event);
  };
  const open = async () => {
    // What happened between the last answers and this connection is in no event that we shall see.
    if (last === null || failures) await client.invalidateQueries({ queryKey: [project] });
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
        await client.invalidateQueries({ queryKey: ["session"] });
      }
      failures += 1;
      if (failures > 1) setConnection("reconnecting");
      await new Promise((resolve) => setTimeout(resolve, Math.min(10_000, 500 * 2 ** failures)));
    } finally {
      watched.release();
    }
  }
}

/** What else an event's domain is shown as. */
const SHOWN_BY: Record<string, string[]> = {
  dataset: ["datasets", "waiting"],
  model: ["models", "model"],
  import: ["imports", "import", "waiting"],
  collection: ["collections", "waiting"],
  playground: ["curves"],
};

/** Where an evaluation is shown. */
const EVALUATED = ["evaluations", "evaluation", "rankings", "waiting"];
const GATHERED_MS = 400;
const renewing = new WeakMap<QueryClient, Set<string>>();

/**
 * Asks again a moment later, once for all events until then and never while an answer is still on its way: a hundred
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

/** An entrant, with its run's progress where the run is this one. */
function withProgress(entrant: Schemas["EntrantOut"], run: string, progress: Run["progress"]) {
  return entrant.run?.id === run ? { ...entrant, run: { ...entrant.run, progress } } : entrant;
}

/** Puts an event into what is cached: progress at once, everything else by asking again. */
export function apply(project: string, client: QueryClient, event: LiveEvent): void {
  const run = event.payload.run_id as string | undefined;
  if (event.type === "run.progress" && run) {
    const progress = event.payload.progress as Run["progress"];
    const update = <T extends Run>(known: T): T => (known.id === run ? { ...known, progress } : known);
    client.setQueriesData<RunDetail>({ queryKey: [project, "run"] }, (known) =>
      known && "config" in known ? update(known) : known,
    );
    client.setQueriesData<Schemas["PipelineDetail"]>({ queryKey: [project, "pipeline"] }, (known) =>
      known && "runs" in known ? { ...known, runs: known.runs.map(update) } : known,
    );
    client.setQueriesData<Schemas["EvaluationDetail"]>(
      { queryKey: [project, "evaluation"], predicate: ({ queryKey }) => queryKey.length === 3 },
      (known) =>
        known && { ...known, entrants: known.entrants.map((one) => withProgress(one, run, progress)) },
    );
    client.setQueriesData<{ pages: { items: Run[] }[] }>({ queryKey: [project, "runs"] }, (known) =>
      known
        ? { ...known, pages: known.pages.map((page) => ({ ...page, items: page.items.map(update) })) }
        : known,
    );
    return;
  }
  if (event.type === "run.state" || event.type === "run.moved") {
    for (const key of ["runs", "run", "pipelines", "pipeline", "benchmarks"]) {
      void client.invalidateQueries({ queryKey: [project, key] });
    }
    void client.invalidateQueries({ queryKey: ["queues"] });
    void client.invalidateQueries({ queryKey: ["workers"] });
    void client.invalidateQueries({ queryKey: [project, "waiting"] });
    // Answers, rewards and verdicts are made by runs.
    renewSoon(client, [project, "evaluations"]);
    renewSoon(client, [project, "evaluation"]);
  } else if (event.type === "evaluation.changed") {
    for (const key of EVALUATED) renewSoon(client, [project, key]);
  } else {
    for (const key of SHOWN_BY[event.type.split(".")[0]!] ?? []) {
      void client.invalidateQueries({ queryKey: [project, key] });
    }
  }
}
