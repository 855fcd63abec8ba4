import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import type { Run, RunDetail } from "./runs";
import type { Schemas } from "./client";

/** One event of a project's stream. */
export interface LiveEvent {
  id: number;
  type: string;
  payload: Record<string, unknown>;
}

/** Splits a stream of server-sent events. Feed it text as it comes; it calls back with each whole event. */
export class EventParser {
  private rest = "";

  constructor(private readonly onEvent: (event: LiveEvent) => void) {}

  feed(text: string): void {
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const line = block.split("\n").find((part) => part.startsWith("data: "));
      if (line) this.onEvent(JSON.parse(line.slice(6)) as LiveEvent);
    }
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

async function follow(project: string, client: QueryClient, stop: AbortSignal): Promise<void> {
  let last: number | null = null;
  let failures = 0;
  const parser = () =>
    new EventParser((event) => {
      last = event.id;
      apply(project, client, event);
    });
  while (!stop.aborted) {
    try {
      const headers: HeadersInit = last === null ? {} : { "Last-Event-ID": String(last) };
      const response = await fetch(`/api/v1/projects/${project}/events`, { headers, signal: stop });
      if (response.status === 401) await client.invalidateQueries({ queryKey: ["session"] });
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      // What happened between the last answers and this connection is in no event that we shall see.
      if (last === null || failures) await client.invalidateQueries({ queryKey: [project] });
      failures = 0;
      setConnection("live");
      const events = parser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        events.feed(value);
      }
    } catch {
      if (stop.aborted) return;
      failures += 1;
      if (failures > 1) setConnection("reconnecting");
      await new Promise((resolve) => setTimeout(resolve, Math.min(10_000, 500 * 2 ** failures)));
    }
  }
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
    client.setQueriesData<{ pages: { items: Run[] }[] }>({ queryKey: [project, "runs"] }, (known) =>
      known
        ? { ...known, pages: known.pages.map((page) => ({ ...page, items: page.items.map(update) })) }
        : known,
    );
    return;
  }
  if (event.type === "run.state") {
    for (const key of ["runs", "run", "pipelines", "pipeline"]) {
      void client.invalidateQueries({ queryKey: [project, key] });
    }
    void client.invalidateQueries({ queryKey: ["queues"] });
    void client.invalidateQueries({ queryKey: ["workers"] });
  } else if (event.type.startsWith("dataset.")) {
    void client.invalidateQueries({ queryKey: [project, "datasets"] });
  } else if (event.type.startsWith("model.")) {
    void client.invalidateQueries({ queryKey: [project, "models"] });
  }
}
