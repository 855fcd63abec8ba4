import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type NoticeRule = Schemas["NoticeRuleOut"];
export type NoticeEvent = NoticeRule["events"][number];
export type Delivery = Schemas["DeliveryOut"];

export type Schedule = NoticeRule["schedule"];

/** Grouped as the form shows them. */
export const EVENTS: readonly { about: string; events: readonly NoticeEvent[] }[] = [
  { about: "Runs", events: ["run.succeeded", "run.failed", "run.cancelled", "run.paused", "run.health"] },
  { about: "Pipelines", events: ["pipeline.succeeded", "pipeline.failed", "pipeline.cancelled"] },
  { about: "Evaluations", events: ["evaluation.succeeded", "evaluation.failed", "evaluation.cancelled"] },
  { about: "Gates and campaigns", events: ["gate.passed", "gate.failed", "campaign.done"] },
  { about: "Comments", events: ["comment.mention"] },
];

/** When each event happens. */
export const EVENT_WORDS: Record<NoticeEvent, string> = {
  "run.succeeded": "a run succeeds",
  "run.failed": "a run fails",
  "run.cancelled": "a run is cancelled",
  "run.paused": "a run is paused",
  "run.health": "a health rule of a run is met",
  "pipeline.succeeded": "a pipeline succeeds",
  "pipeline.failed": "a pipeline fails",
  "pipeline.cancelled": "a pipeline is cancelled",
  "evaluation.succeeded": "an evaluation succeeds",
  "evaluation.failed": "an evaluation fails",
  "evaluation.cancelled": "an evaluation is cancelled",
  "gate.passed": "a gate passes",
  "gate.failed": "a gate fails",
  "campaign.done": "a campaign has all its rankings",
  "comment.mention": "a comment mentions someone",
};

export const rulesQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "notice-rules"],
    queryFn: () =>
      data(api.GET("/api/v1/projects/{project}/notice-rules", { params: { path: { project } } })),
    // Deliveries have no event.
    refetchInterval: 10_000,
  });

/** Below the rules: what changes one changes its deliveries too. */
export const deliveriesQuery = (project: string, rule: string) =>
  infiniteQueryOptions({
    queryKey: [project, "notice-rules", rule, "deliveries"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/notice-rules/{rule}/deliveries", {
          params: { path: { project, rule }, query: { cursor: pageParam, limit: 50 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: 5_000,
  });

export const createRule = (project: string, body: Schemas["NoticeRuleCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/notice-rules", { params: { path: { project } }, body }));

export const changeRule = (project: string, rule: string, body: Schemas["NoticeRuleChange"]) =>
  data(
    api.PATCH("/api/v1/projects/{project}/notice-rules/{rule}", {
      params: { path: { project, rule } },
      body,
    }),
  );

export const deleteRule = (project: string, rule: string) =>
  data(api.DELETE("/api/v1/projects/{project}/notice-rules/{rule}", { params: { path: { project, rule } } }));

export const testRule = (project: string, rule: string) =>
  data(
    api.POST("/api/v1/projects/{project}/notice-rules/{rule}/test", {
      params: { path: { project, rule } },
    }),
  );

export const redeliver = (project: string, rule: string, delivery: string) =>
  data(
    api.POST("/api/v1/projects/{project}/notice-rules/{rule}/deliveries/{delivery}/redeliver", {
      params: { path: { project, rule, delivery } },
    }),
  );
