import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, data, Problem, setCsrfToken, type Schemas } from "../client";

type Scope = Schemas["SessionProject"]["allows"][number];

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async () => {
    const session = await data(api.GET("/api/v1/session"));
    if (!session) throw new Problem(401, "unauthenticated", "You are not signed in", "");
    setCsrfToken(session.csrf_token);
    return session;
  },
  staleTime: Infinity,
  retry: false,
});

const allows = (session: Schemas["SessionOut"] | undefined, project: string, scope: Scope) =>
  session?.projects.find((one) => one.name === project)?.allows.includes(scope) ?? false;

/** Annotators have pages of their own; the server refuses them what the others show. */
export const opens = (session: Schemas["SessionOut"], project: string, path: string) =>
  allows(session, project, "read") || /\/(settings|rank|arena)(\/|$)/.test(path);

/** Whether the person may do this in the project. The server refuses it anyway; the page does not offer it. */
export function useMay(project: string, scope: Scope): boolean {
  return allows(useQuery(sessionQuery).data, project, scope);
}

/** The ways in besides links and passwords. */
export const signInMethodsQuery = queryOptions({
  queryKey: ["sign-in-methods"],
  queryFn: () => data(api.GET("/api/v1/sign-in-methods")),
  staleTime: Infinity,
});

export const startSession = (body: Schemas["SignIn"]) => data(api.POST("/api/v1/session", { body }));

export const endSession = () => data(api.DELETE("/api/v1/session"));

export const changePassword = (body: Schemas["PasswordChange"]) =>
  data(api.PUT("/api/v1/session/password", { body }));
