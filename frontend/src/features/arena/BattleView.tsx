import { Alert, Button, Group, Kbd, Stack, Text } from "@mantine/core";
import { IconPlayerTrackNext } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import {
  askAgain,
  battleQuery,
  ended,
  followBattle,
  readBattle,
  type Verdict,
} from "../../api/arena/battles";
import { Problem } from "../../api/client";
import { randomId } from "../../api/randomId";
import { Failure, Loading } from "../../shared/Feedback";
import { useParcels } from "../../shared/outbox/useOutbox";
import { PromptBox } from "./PromptBox";
import { TurnView } from "./TurnView";
import { useArenaKeys } from "./useArenaKeys";
import { choicesOf, namesOf } from "./verdicts";
import { VoteBar } from "./VoteBar";
import { useVoteBox } from "./votes";

interface Properties {
  project: string;
  id: string;
  /** Begin another battle. */
  onNext: () => void;
}

/** A conversation with two or more policies whose names come after the vote. */
export function BattleView({ project, id, onNext }: Properties) {
  const client = useQueryClient();
  const query = useQuery(battleQuery(project, id));
  const battle = query.data;
  const last = battle?.turns.at(-1);
  const live = !!last && !last.sides.every(ended);
  const turns = battle?.turns.length ?? 0;
  useEffect(() => {
    if (!live) return;
    const leaving = new AbortController();
    void followBattle(project, id, turns, client, leaving.signal);
    return () => leaving.abort();
  }, [project, id, client, live, turns]);

  const box = useVoteBox(project);
  const waiting = useParcels(box).find((vote) => vote.battle === id && !vote.refused);
  const [prompt, setPrompt] = useState("");
  const known = battleQuery(project, id).queryKey;
  const again = useMutation({
    mutationFn: async (prompt: string) => {
      try {
        return await askAgain(project, id, turns + 1, prompt);
      } catch (problem) {
        // It may have arrived all the same, or another page may have asked first.
        const now = await readBattle(project, id).catch(() => null);
        const asked = now?.turns[turns];
        if (!now || !asked) throw problem;
        if (asked.prompt === prompt) return now;
        client.setQueryData(known, now);
        throw new Problem(
          409,
          "asked_before",
          "Another question came first",
          "It is above. Send this one again when it has been answered, or vote.",
        );
      }
    },
    onSuccess: (asked) => client.setQueryData(known, asked),
  });

  const sides = last?.sides.length ?? 0;
  const all = sides === 2 ? "both" : "all";
  const choices = choicesOf(sides);
  const failed = !!last?.sides.some((side) => side.state === "failed");
  const verdict = battle?.vote?.verdict ?? waiting?.verdict;
  const answered = !!last && !live && !failed && !verdict;
  const open = answered && !again.isPending;
  // About the turns on this page: the server may have taken another question whose answer was lost.
  const vote = useCallback(
    (given: Verdict) => box.add({ submission: randomId(), battle: id, verdict: given, turns }),
    [box, id, turns],
  );
  useArenaKeys(choices, open ? vote : null, verdict || failed ? onNext : null);

  if (query.error && !battle) return <Failure error={query.error} retry={() => void query.refetch()} />;
  if (!battle) return <Loading rows={3} />;
  return (
    <Stack gap="md">
      {battle.turns.map((turn, place) => (
        <TurnView
          key={place}
          turn={turn}
          names={battle.vote?.names ?? null}
          waitsFor={place === turns - 1 ? battle.waits_for : null}
        />
      ))}
      {open && <VoteBar choices={choices} onVote={vote} />}
      {failed && !verdict && (
        <Alert color="yellow" title={`Not ${all} have answered`}>
          One of them failed, so this battle cannot be voted on.
        </Alert>
      )}
      {verdict && (
        <Text size="sm" role="status">
          Your vote: <strong>{choices.find((one) => one.verdict === verdict)?.given}</strong>.{" "}
          {battle.vote
            ? [
                `${namesOf(battle.vote.names)}.`,
                battle.vote.turns < turns && "It covers the turns that you had seen, without the last.",
                !battle.vote.counts && "You asked them the same before, so it does not count again.",
              ]
                .filter(Boolean)
                .join(" ")
            : "It is being sent; the names appear when it has arrived. You can continue."}
        </Text>
      )}
      {(verdict || failed) && (
        <Group>
          <Button
            leftSection={<IconPlayerTrackNext size={16} />}
            rightSection={
              <Kbd size="xs" visibleFrom="sm" aria-hidden>
                N
              </Kbd>
            }
            aria-keyshortcuts="N"
            onClick={onNext}
          >
            Next battle
          </Button>
        </Group>
      )}
      {answered && (
        <PromptBox
          label={`Ask ${all} again`}
          placeholder={`Ask ${all} a follow-up question, or vote. Ctrl+Enter sends.`}
          sends="Send"
          asking={again.isPending}
          prompt={prompt}
          onPrompt={setPrompt}
          onSend={again.mutateAsync}
        />
      )}
      {again.error && !verdict && <Failure error={again.error} />}
    </Stack>
  );
}
