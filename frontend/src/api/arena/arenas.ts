import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Arena = Schemas["ArenaOut"];
export type Leaderboard = Schemas["ArenaLeaderboard"];

export const arenaKeys = { all: (project: string) => [project, "arenas"] as const };

export const arenasQuery = (project: string) =>
  queryOptions({
    queryKey: arenaKeys.all(project),
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/arenas", {
          params: { path: { project }, query: { limit: 200 } },
        }),
      ),
  });

export const leaderboardQuery = (project: string, arena: string, category: string | null) =>
  queryOptions({
    queryKey: [...arenaKeys.all(project), arena, "leaderboard", category],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/arenas/{arena}/leaderboard", {
          params: { path: { project, arena }, query: category === null ? {} : { category } },
        }),
      ),
    refetchOnMount: "always",
  });

export const createArena = (project: string, body: Schemas["ArenaIn"]) =>
  data(api.POST("/api/v1/projects/{project}/arenas", { params: { path: { project } }, body }));

export const closeArena = (project: string, arena: string) =>
  data(api.POST("/api/v1/projects/{project}/arenas/{arena}/close", { params: { path: { project, arena } } }));

export const makePairs = (project: string, arena: string) =>
  data(
    api.POST("/api/v1/projects/{project}/arenas/{arena}/preferences", {
      params: { path: { project, arena } },
      body: {} as never,
    }),
  );

export const battlesFile = (project: string, arena: string) =>
  `/api/v1/projects/${encodeURIComponent(project)}/arenas/${encodeURIComponent(arena)}/export`;
