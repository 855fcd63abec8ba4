import type { QueryClient } from "@tanstack/react-query";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { sessionQuery } from "../../api/accounts/session";
import { arenaKeys } from "../../api/arena/arenas";
import { battleQuery, type Verdict, voteOn } from "../../api/arena/battles";
import { Problem } from "../../api/client";
import { Outbox, type Parcel } from "../../shared/outbox/outbox";

export interface Vote extends Parcel {
  battle: string;
  verdict: Verdict;
  /** How many turns the voter has seen. Votes that an earlier version left in the browser are about all. */
  turns?: number;
}

// One for a person and project, whatever pages use it: two would send the same votes twice.
const boxes = new Map<string, Outbox<Vote>>();

function boxOf(project: string, user: string, client: QueryClient): Outbox<Vote> {
  const name = `steerboard.votes.${user}.${project}`;
  const known = boxes.get(name);
  if (known) return known;
  const made = new Outbox<Vote>(name, async ({ battle, submission, verdict, turns }) => {
    try {
      const voted = await voteOn(project, battle, { submission, verdict, turns });
      client.setQueryData(battleQuery(project, battle).queryKey, voted);
      void client.invalidateQueries({ queryKey: arenaKeys.all(project) });
    } catch (problem) {
      // Another tab may have signed in again since: its session has another key.
      if (problem instanceof Problem && [401, 403].includes(problem.status)) {
        await client.fetchQuery({ ...sessionQuery, staleTime: 0 }).catch(() => undefined);
      }
      throw problem;
    }
  });
  boxes.set(name, made);
  return made;
}

/** The votes of the person who is signed in that are on their way. */
export function useVoteBox(project: string): Outbox<Vote> {
  const client = useQueryClient();
  const { data: session } = useSuspenseQuery(sessionQuery);
  return boxOf(project, session.user, client);
}
