import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "../../../api/client";
import { addEntrant, type Evaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import { Failure } from "../../../shared/Feedback";
import { counted } from "../../../shared/format/format";
import { answersOf, emptyEntrant, entrantsOf, withModels } from "./draft";
import { EntrantFields } from "./EntrantFields";
import { PipelineModels } from "./PipelineModels";

interface Properties {
  project: string;
  evaluation: Evaluation;
  opened: boolean;
  onClose: () => void;
}

/** More who answer the same prompts, each once for each requested score. */
export function AddEntrant({ opened, onClose, ...rest }: Properties) {
  return (
    <Modal opened={opened} onClose={onClose} title="Add entrants" size="xl">
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
  const [drafts, setDrafts] = useState(() => [emptyEntrant()]);
  const { entrants, lines } = entrantsOf(drafts);
  const add = useMutation({
    mutationFn: async () => {
      for (const [at, body] of entrants.entries()) {
        try {
          await addEntrant(project, evaluation.id, body);
        } catch (error) {
          // The entrants before it have been added; the form keeps the others.
          setDrafts(drafts.slice(lines[at]));
          throw error;
        }
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
    onSuccess: onDone,
  });
  // The first line that is left is the one that was refused.
  const errors =
    add.error instanceof Problem
      ? Object.fromEntries(
          add.error.places.map((one) => [`entrants.0.${one.location.replace(/^body\./, "")}`, one.message]),
        )
      : {};
  return (
    <Stack>
      {drafts.map((draft, at) => (
        <EntrantFields
          key={draft.key}
          project={project}
          draft={draft}
          onChange={(changed) => setDrafts(drafts.map((one) => (one.key === draft.key ? changed : one)))}
          onRemove={
            drafts.length > 1 ? () => setDrafts(drafts.filter((one) => one.key !== draft.key)) : undefined
          }
          errors={errors}
          place={`entrants.${at}`}
        />
      ))}
      <Group gap="xs">
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={14} />}
          onClick={() => setDrafts([...drafts, emptyEntrant()])}
        >
          Another entrant
        </Button>
        <PipelineModels project={project} onModels={(names) => setDrafts(withModels(drafts, names))} />
      </Group>
      {add.error && <Failure error={add.error} />}
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {entrants.length
            ? `${counted(answersOf(drafts, evaluation.prompts), "answer")} will be made.`
            : "Choose a model or an endpoint."}
        </Text>
        <Button disabled={!entrants.length} loading={add.isPending} onClick={() => add.mutate()}>
          Generate answers
        </Button>
      </Group>
    </Stack>
  );
}
