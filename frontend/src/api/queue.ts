import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type QueuedRun = Schemas["QueuedRun"];

/** What waits in a pool, in order. Below `queues`, so that the live events bring it anew with them. */
export const queueQuery = (pool: string) =>
  queryOptions({
    queryKey: ["queues", pool],
    queryFn: () =>
      data(api.GET("/api/v1/system/queues/{pool}", { params: { path: { pool }, query: { limit: 200 } } })),
    // Events tell of this project alone; the runs of others move the places too.
    refetchInterval: 5000,
  });
