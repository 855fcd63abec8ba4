import { queryOptions } from "@tanstack/react-query";
import { api, data, setCsrfToken } from "./client";

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
