import { queryOptions, type QueryClient } from "@tanstack/react-query";
import { api, data, type Schemas } from "../client";
import { readEvents } from "../live/stream";

export type Battle = Schemas["BattleOut"];
export type Side = Schemas["Side"];
/** The sides of a battle, by their place. */
export const LETTERS = ["a", "b", "c", "d"] as const;
/** What one event of a stream adds: the text is what was known up to `at`, then `text`. */
export type SideChange = Side & { side: (typeof LETTERS)[number]; at: number };
export type Verdict = Schemas["VoteIn"]["verdict"];

/** A request that hangs in a bad network counts as failed. */
const patience = () => AbortSignal.timeout(20_000);

export const ended = (side: Side) => side.state === "succeeded" || side.state === "failed";

export const readBattle = (project: string, battle: string) =>
  data(
    api.GET("/api/v1/projects/{project}/battles/{battle}", {
      params: { path: { project, battle } },
      signal: patience(),
    }),
  );

export const battleQuery = (project: string, battle: string) =>
  queryOptions({
    queryKey: [project, "battle", battle],
    queryFn: () => readBattle(project, battle),
    // The stream keeps it up to date.
    staleTime: Infinity,
  });

export const beginBattle = (project: string, arena: string, body: Schemas["BattleIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/arenas/{arena}/battles", {
      params: { path: { project, arena } },
      body,
    }),
  );

/** Asks turn number `turn`, from 1. With a key of this turn, a second try after a lost answer is no second turn. */
export const askAgain = (project: string, battle: string, turn: number, prompt: string) =>
  data(
    api.POST("/api/v1/projects/{project}/battles/{battle}/turns", {
      params: { path: { project, battle } },
      headers: { "Idempotency-Key": `turn-${turn}` },
      body: { prompt },
      signal: patience(),
    }),
  );

export const voteOn = (project: string, battle: string, body: Schemas["VoteIn"]) =>
  data(
    api.POST("/api/v1/projects/{project}/battles/{battle}/vote", {
      params: { path: { project, battle } },
      body,
      signal: patience(),
    }),
  );

/** The battle with what one event of its stream adds to turn `number`, from 1. */
export function withChange(
  known: Battle,
  number: number,
  { side, at, text, state, cut }: SideChange,
): Battle {
  const changed = LETTERS.indexOf(side);
  const turns = known.turns.map((turn, place) =>
    place === number - 1
      ? {
          ...turn,
          sides: turn.sides.map((known, place) =>
            place === changed ? { state, cut, text: known.text.slice(0, at) + text } : known,
          ),
        }
      : turn,
  );
  return { ...known, turns, waits_for: null };
}

/** Follows turn number `turn` until all answers have ended; after a break it starts over with everything so far. Another
 * page may have asked a further turn by then, whose texts must not get into this one. */
export async function followBattle(
  project: string,
  battle: string,
  turn: number,
  client: QueryClient,
  signal: AbortSignal,
): Promise<void> {
  const { queryKey } = battleQuery(project, battle);
  const url = `/api/v1/projects/${project}/battles/${battle}/stream?turn=${turn}`;
  let over = false;
  for (let failures = 0; !over && !signal.aborted;) {
    try {
      await readEvents(url, { signal }, (change, name) => {
        if (name === "end") over = true;
        else if (name === "answer")
          client.setQueryData(queryKey, (known) => known && withChange(known, turn, change as SideChange));
      });
      failures = 0;
    } catch {
      failures += 1;
    }
    if (!over) await new Promise((resolve) => setTimeout(resolve, Math.min(5000, 300 * 2 ** failures)));
  }
}
