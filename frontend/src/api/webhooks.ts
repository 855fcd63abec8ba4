import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "./client";

export type Webhook = Schemas["WebhookOut"];
export type WebhookEvent = Webhook["events"][number];
export type Delivery = Schemas["DeliveryOut"];

export const EVENTS: readonly WebhookEvent[] = [
  "run.succeeded",
  "run.failed",
  "run.cancelled",
  "pipeline.succeeded",
  "pipeline.failed",
  "pipeline.cancelled",
];

export const webhooksQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "webhooks"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/webhooks", { params: { path: { project } } })),
    // No event tells of a delivery.
    refetchInterval: 10_000,
  });

/** Below `webhooks`: what changes one changes its deliveries too. */
export const deliveriesQuery = (project: string, webhook: string) =>
  infiniteQueryOptions({
    queryKey: [project, "webhooks", webhook, "deliveries"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/webhooks/{webhook}/deliveries", {
          params: { path: { project, webhook }, query: { cursor: pageParam, limit: 50 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: 5_000,
  });
