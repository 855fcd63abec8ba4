import { Alert, Button, Group, Kbd, Stack, Text } from "@mantine/core";
import { IconPlayerTrackNext } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { askAgain, battleQuery, ended, followBattle, type Verdict } from "../../api/arena/battles";
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
    void followBattle(project, id, client, leaving.signal);
    return () => leaving.abort();
  }, [project, id, client, live, turns]);

  const box = useVoteBox(project);
  const waiting = useParcels(box).find((vote) => vote.battle === id && !vote.refused);
  const again = useMutation({
    mutationFn: (prompt: string) => askAgain(project, id, prompt),
    onSuccess: (asked) => client.setQueryData(battleQuery(project, id).queryKey, asked),
  });

  const sides = last?.sides.length ?? 0;
  const all = sides === 2 ? "both" : "all";
  const choices = choicesOf(sides);
  const failed = !!last?.sides.some((side) => side.state === "failed");
  const verdict = battle?.vote?.verdict ?? waiting?.verdict;
  const open = !!last && !live && !failed && !verdict && !again.isPending;
  const vote = useCallback(
    (given: Verdict) => box.add({ submission: randomId(), battle: id, verdict: given }),
    [box, id],
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
      {failed && (
        <Alert color="yellow" title={`Not ${all} have answered`}>
          One of them failed, so this battle takes no vote.
        </Alert>
      )}
      {verdict && (
        <Text size="sm" role="status">
          Your vote: <strong>{choices.find((one) => one.verdict === verdict)?.given}</strong>.{" "}
          {battle.vote
            ? `${namesOf(battle.vote.names)}.${battle.vote.counts ? "" : " You asked these the same before, so it does not count again."}`
            : "It is on its way; the names come when it has arrived. You can continue."}
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
      {open && (
        <PromptBox
          label={`Ask ${all} again`}
          placeholder={`A further question to ${all}, or vote. Ctrl+Enter sends.`}
          sends="Send"
          asking={again.isPending}
          onSend={again.mutateAsync}
        />
      )}
      {again.error && <Failure error={again.error} />}
    </Stack>
  );
}
