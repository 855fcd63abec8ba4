import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Webhook = Schemas["WebhookOut"];
export type WebhookEvent = Webhook["events"][number];
export type Delivery = Schemas["DeliveryOut"];

export const EVENTS: readonly WebhookEvent[] = [
  "run.succeeded",
  "run.failed",
  "run.cancelled",
  "run.paused",
  "run.health",
  "pipeline.succeeded",
  "pipeline.failed",
  "pipeline.cancelled",
];

export const webhooksQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "webhooks"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/webhooks", { params: { path: { project } } })),
    // Deliveries have no event.
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

export const createWebhook = (project: string, body: Schemas["WebhookCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/webhooks", { params: { path: { project } }, body }));

export const changeWebhook = (project: string, webhook: string, body: Schemas["WebhookChange"]) =>
  data(
    api.PATCH("/api/v1/projects/{project}/webhooks/{webhook}", {
      params: { path: { project, webhook } },
      body,
    }),
  );

export const deleteWebhook = (project: string, webhook: string) =>
  data(
    api.DELETE("/api/v1/projects/{project}/webhooks/{webhook}", { params: { path: { project, webhook } } }),
  );

export const testWebhook = (project: string, webhook: string) =>
  data(
    api.POST("/api/v1/projects/{project}/webhooks/{webhook}/test", {
      params: { path: { project, webhook } },
    }),
  );

export const redeliver = (project: string, webhook: string, delivery: string) =>
  data(
    api.POST("/api/v1/projects/{project}/webhooks/{webhook}/deliveries/{delivery}/redeliver", {
      params: { path: { project, webhook, delivery } },
    }),
  );
