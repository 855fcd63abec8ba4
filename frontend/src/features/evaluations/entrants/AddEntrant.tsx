import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../../../api/client";
import { addEntrant, type Evaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import { Failure } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { answersOf, emptyEntrant, entrantsOf } from "./draft";
import { EntrantFields } from "./EntrantFields";

interface Properties {
  project: string;
  evaluation: Evaluation;
  opened: boolean;
  onClose: () => void;
}

/** One more who answers the same prompts, once for each requested score. */
export function AddEntrant({ opened, onClose, ...rest }: Properties) {
  return (
    <Modal opened={opened} onClose={onClose} title="Add an entrant" size="xl">
      <Form {...rest} onDone={onClose} />
    </Modal>
  );
}

function Form({
  project,
  evaluation,
  onDone,
}: Omit<Properties, "opened" | "onClose"> & { onDone: () => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => emptyEntrant());
  const { entrants } = entrantsOf([draft]);
  const add = useMutation({
    mutationFn: async () => {
      for (const body of entrants) {
        await addEntrant(project, evaluation.id, body);
      }
    },
    // Some may have been added before one was refused.
    onSettled: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
    onSuccess: onDone,
  });
  const errors =
    add.error instanceof Problem
      ? Object.fromEntries(
          add.error.places.map((one) => [`entrant.${one.location.replace(/^body\./, "")}`, one.message]),
        )
      : {};
  return (
    <Stack>
      <EntrantFields project={project} draft={draft} onChange={setDraft} errors={errors} place="entrant" />
      {add.error && <Failure error={add.error} />}
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {draft.who
            ? `${count(answersOf([draft], evaluation.prompts))} answers will be made.`
            : "Choose a model or an endpoint."}
        </Text>
        <Button disabled={!draft.who} loading={add.isPending} onClick={() => add.mutate()}>
          Generate answers
        </Button>
      </Group>
    </Stack>
  );
}
