import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { evaluationKeys } from "./evaluations";

export type Campaign = Schemas["CampaignOut"];

export const goldQuery = (project: string, evaluation: string, campaign: string) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "gold", campaign],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/gold", {
          params: { path: { project, evaluation, campaign } },
        }),
      ),
  });

/** Every submission as JSON lines. */
export const rankingsFile = (project: string, evaluation: string, campaign: string) =>
  `/api/v1/projects/${encodeURIComponent(project)}/evaluations/${evaluation}/campaigns/${campaign}/rankings/export`;

export const flagsQuery = (project: string, evaluation: string, campaign: string) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "flags", campaign],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/flags", {
          params: { path: { project, evaluation, campaign } },
        }),
      ),
  });

export const qualityQuery = (project: string, evaluation: string, campaign: string) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "quality", campaign],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/quality", {
          params: { path: { project, evaluation, campaign } },
        }),
      ),
  });

/** Flagged passages of answers, the newest first. */
export const spanFlagsQuery = (project: string, evaluation: string, campaign: string) =>
  infiniteQueryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "spans", campaign],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/spans", {
          params: { path: { project, evaluation, campaign }, query: { cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });

/** The entrants, best first. */
export const standingQuery = (project: string, evaluation: string) =>
  queryOptions({
    queryKey: [...evaluationKeys.one(project, evaluation), "standing"],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/evaluations/{evaluation}/standing", {
          params: { path: { project, evaluation } },
        }),
      ),
  });

export const makeCorrections = (
  project: string,
  evaluation: string,
  campaign: string,
  body: Schemas["CorrectionsCreate"],
) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/corrections", {
      params: { path: { project, evaluation, campaign } },
      body,
    }),
  );

export const createCampaign = (project: string, evaluation: string, body: Schemas["CampaignCreate"]) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns", {
      params: { path: { project, evaluation } },
      body,
    }),
  );

export const changeCampaign = (
  project: string,
  evaluation: string,
  campaign: string,
  body: Schemas["CampaignChange"],
) =>
  data(
    api.PATCH("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}", {
      params: { path: { project, evaluation, campaign } },
      body,
    }),
  );

export const inviteAnnotator = (project: string, evaluation: string, campaign: string, name: string | null) =>
  data(
    api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/annotators", {
      params: { path: { project, evaluation, campaign } },
      body: { name },
    }),
  );

export const saveGold = (
  project: string,
  evaluation: string,
  campaign: string,
  position: number,
  ranks: Record<string, number>,
) =>
  data(
    api.PUT("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/gold/{position}", {
      params: { path: { project, evaluation, campaign, position } },
      body: { ranks },
    }),
  );

export const removeGold = (project: string, evaluation: string, campaign: string, position: number) =>
  data(
    api.DELETE("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/gold/{position}", {
      params: { path: { project, evaluation, campaign, position } },
    }),
  );
