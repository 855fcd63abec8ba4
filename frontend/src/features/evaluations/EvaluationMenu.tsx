import { ActionIcon, Button, Group, Menu, Modal, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconDots } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import {
  changeEvaluation,
  deleteEvaluation,
  type Evaluation,
  evaluationKeys,
} from "../../api/evaluation/evaluations";
import { useMay } from "../../api/accounts/session";
import { Failure } from "../../shared/Feedback";
import { SendForm } from "../../shared/forms/SendForm";
import { evaluationSearch } from "../../shared/search";

/** Rename it, or remove it. */
export function EvaluationMenu({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayWrite = useMay(project, "write");
  const [renaming, rename] = useDisclosure();
  const [removing, remove] = useDisclosure();
  if (!mayWrite) return null;
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size="lg" aria-label="More actions">
            <IconDots size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={rename.open}>Rename or describe it</Menu.Item>
          <Menu.Item color="red" onClick={remove.open}>
            Remove it
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal opened={renaming} onClose={rename.close} title={`Rename ${evaluation.name}`}>
        <Rename project={project} evaluation={evaluation} onDone={rename.close} />
      </Modal>
      <Modal opened={removing} onClose={remove.close} title={`Remove ${evaluation.name}?`}>
        <Remove project={project} evaluation={evaluation} onKeep={remove.close} />
      </Modal>
    </>
  );
}

interface Properties {
  project: string;
  evaluation: Evaluation;
}

function Rename({ project, evaluation, onDone }: Properties & { onDone: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState(evaluation.name);
  const [description, setDescription] = useState(evaluation.description);
  const change = useMutation({
    mutationFn: () => changeEvaluation(project, evaluation.id, { name: name.trim(), description }),
    onSuccess: async (changed) => {
      await navigate({
        to: "/p/$project/evaluations/$evaluation",
        params: { project, evaluation: changed.name },
        search: evaluationSearch,
        replace: true,
      });
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  return (
    <SendForm send={change} label="Save">
      <TextInput
        label="Name"
        required
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Textarea
        label="Purpose"
        autosize
        minRows={2}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
    </SendForm>
  );
}

function Remove({ project, evaluation, onKeep }: Properties & { onKeep: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => deleteEvaluation(project, evaluation.id),
    onSuccess: async () => {
      await navigate({ to: "/p/$project/evaluations", params: { project } });
      await client.invalidateQueries({ queryKey: evaluationKeys.list(project) });
    },
  });
  return (
    <Stack>
      <Text size="sm">
        Its answers, verdicts and rewards are deleted, and its runs are cancelled. Verdicts already paid for
        stay cached. An evaluation in which people have ranked cannot be removed.
      </Text>
      {remove.error && <Failure error={remove.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onKeep}>
          Cancel
        </Button>
        <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()}>
          Remove it
        </Button>
      </Group>
    </Stack>
  );
}
