import { queryOptions } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";

export type RewardJudge = Schemas["RewardJudgeOut"];

/** The newest 200 judges whose word may be a reward, or those with the part in `EVALUATION/JUDGE`. */
export const rewardJudgesQuery = (project: string, name?: string) =>
  queryOptions({
    queryKey: [project, "reward-judges", ...(name ? [name] : [])],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/reward-judges", {
          params: { path: { project }, query: { name, limit: 200 } },
        }),
      ),
  });
