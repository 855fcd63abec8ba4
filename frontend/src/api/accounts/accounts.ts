import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type Member = Schemas["MemberOut"];
export type Role = Member["role"];
export type Token = Schemas["TokenOut"];
export type TokenScope = Schemas["TokenCreate"]["scopes"][number];

export interface AuditFilters {
  actor?: string;
  action?: string;
}

const pages = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: { next?: string | null }) => page.next ?? undefined,
};

export const membersQuery = (project: string) =>
  infiniteQueryOptions({
    queryKey: [project, "members"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/members", {
          params: { path: { project }, query: { cursor: pageParam, limit: 100 } },
        }),
      ),
    ...pages,
  });

export const tokensQuery = (project: string) =>
  infiniteQueryOptions({
    queryKey: [project, "tokens"],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/tokens", {
          params: { path: { project }, query: { cursor: pageParam, limit: 100 } },
        }),
      ),
    ...pages,
  });

export const auditQuery = (project: string, filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: [project, "audit", filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/projects/{project}/audit", {
          params: { path: { project }, query: { ...filters, cursor: pageParam, limit: 50 } },
        }),
      ),
    ...pages,
    placeholderData: keepPreviousData,
  });

/** What belongs to no project: signing in and out, passwords, links. */
export const systemAuditQuery = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: ["audit", filters],
    queryFn: ({ pageParam }) =>
      data(
        api.GET("/api/v1/system/audit", { params: { query: { ...filters, cursor: pageParam, limit: 50 } } }),
      ),
    ...pages,
    placeholderData: keepPreviousData,
  });

export const projectQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "project"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}", { params: { path: { project } } })),
  });

/** The device-hours of this month and the bytes that are kept, and how many of each there may be. */
export const quotaQuery = (project: string) =>
  queryOptions({
    queryKey: [project, "quota"],
    queryFn: () => data(api.GET("/api/v1/projects/{project}/quota", { params: { path: { project } } })),
  });

/** Only what is given changes. */
export const setQuota = (project: string, body: Schemas["QuotaChange"]) =>
  data(api.PUT("/api/v1/projects/{project}/quota", { params: { path: { project } }, body }));

export const createProject = (body: Schemas["ProjectCreate"]) => data(api.POST("/api/v1/projects", { body }));

export const addMember = (project: string, body: Schemas["MemberAdd"]) =>
  data(api.POST("/api/v1/projects/{project}/members", { params: { path: { project } }, body }));

export const changeRole = (project: string, user: string, role: Role) =>
  data(
    api.PATCH("/api/v1/projects/{project}/members/{user}", {
      params: { path: { project, user } },
      body: { role },
    }),
  );

export const removeMember = (project: string, user: string) =>
  data(api.DELETE("/api/v1/projects/{project}/members/{user}", { params: { path: { project, user } } }));

export const makeSignInLink = (project: string, user: string) =>
  data(
    api.POST("/api/v1/projects/{project}/members/{user}/sign-in-link", {
      params: { path: { project, user } },
    }),
  );

export const createToken = (project: string, body: Schemas["TokenCreate"]) =>
  data(api.POST("/api/v1/projects/{project}/tokens", { params: { path: { project } }, body }));

export const revokeToken = (project: string, token: string) =>
  data(api.DELETE("/api/v1/projects/{project}/tokens/{token}", { params: { path: { project, token } } }));
