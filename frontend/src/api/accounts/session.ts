import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, data, setCsrfToken, type Schemas } from "../client";

type Scope = Schemas["SessionProject"]["allows"][number];

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async () => {
    const session = await data(api.GET("/api/v1/session"));
    setCsrfToken(session.csrf_token);
    return session;
  },
  staleTime: Infinity,
  retry: false,
});

/** Whether the person may do this in the project. The server refuses it anyway; the page does not offer it. */
export function useMay(project: string, scope: Scope): boolean {
  const session = useQuery(sessionQuery);
  return session.data?.projects.find((one) => one.name === project)?.allows.includes(scope) ?? false;
}

export const startSession = (body: Schemas["SignIn"]) => data(api.POST("/api/v1/session", { body }));

export const endSession = () => data(api.DELETE("/api/v1/session"));

export const changePassword = (body: Schemas["PasswordChange"]) =>
  data(api.PUT("/api/v1/session/password", { body }));
