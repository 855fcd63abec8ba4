import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type QueuedRun = Schemas["QueuedRun"];

/** Queued runs of a pool, in order. Below `queues`, so live events refresh it with them. */
export const queueQuery = (pool: string) =>
  queryOptions({
    queryKey: ["queues", pool],
    queryFn: () =>
      data(api.GET("/api/v1/system/queues/{pool}", { params: { path: { pool }, query: { limit: 200 } } })),
    // Events tell of this project alone; the runs of others move the places too.
    refetchInterval: 5000,
  });

export const queuesQuery = queryOptions({
  queryKey: ["queues"],
  queryFn: () => data(api.GET("/api/v1/system/queues")),
  refetchInterval: 5000,
});

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: () => data(api.GET("/api/v1/system/workers")),
  refetchInterval: 5000,
});
