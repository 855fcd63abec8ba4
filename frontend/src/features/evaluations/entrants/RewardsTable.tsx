import { Button, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { type Evaluation, evaluationKeys, scoreAnswers } from "../../../api/evaluation/evaluations";
import { modelsQuery } from "../../../api/models/models";
import { useMay } from "../../../api/accounts/session";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Failure } from "../../../shared/Feedback";
import { count, percent } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { StateBadge } from "../../../shared/StateBadge";
import { Section, Share } from "../parts";
import { useByName } from "../../../shared/forms/useByName";

type Assessment = Schemas["RewardAssessmentOut"];

/** The reward models that score the answers. */
export function RewardsTable({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayRun = useMay(project, "run");
  const [adding, add] = useDisclosure();
  const found = evaluation.reward_assessments;
  if (!found.length && !evaluation.entrants.length) return null;
  const columns: Column<Assessment>[] = [
    {
      title: "Reward model",
      cell: (one) => (
        <Link size="sm" to="/p/$project/models/$model" params={{ project, model: one.name }}>
          {one.name}
        </Link>
      ),
    },
    {
      title: "Scored",
      cell: (one) => <Share of={one.name} done={one.values} total={one.responses} unit="answers" />,
    },
    {
      title: "State",
      cell: (one) => (
        <>
          <StateBadge state={one.state} />
          {one.run && one.state !== "succeeded" && (
            <Text size="xs" c="dimmed">
              {one.run.reason}
            </Text>
          )}
        </>
      ),
    },
    { title: "Pair accuracy", right: true, wide: true, cell: (one) => percent(one.accuracy) },
    { title: "Held-out pairs", right: true, wide: true, cell: (one) => count(one.pairs) },
  ];
  return (
    <Section
      title="Reward models"
      actions={
        mayRun && (
          <Button size="xs" variant="default" onClick={add.open}>
            Let a reward model score
          </Button>
        )
      }
    >
      {found.length ? (
        <DataTable label="Reward models" rows={found} columns={columns} keyOf={(one) => one.id} />
      ) : (
        <Text size="sm" c="dimmed">
          No reward model has scored these answers yet.
        </Text>
      )}
      <Modal opened={adding} onClose={add.close} title="Let a reward model score all answers">
        <AddRewards project={project} evaluation={evaluation} onDone={add.close} />
      </Modal>
    </Section>
  );
}

function AddRewards({
  project,
  evaluation,
  onDone,
}: {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const [model, setModel] = useState<string | null>(null);
  const models = useByName((name) => modelsQuery(project, { name, role: ["reward"] }), { chosen: [model] });
  const add = useMutation({
    mutationFn: () => scoreAnswers(project, evaluation.id, { model: model! }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  return (
    <Stack>
      <Select
        label="Reward model"
        description="A model that has scored before scores only new answers"
        data={(models.data ?? []).map((one) => one.name)}
        onSearchChange={models.onSearchChange}
        nothingFoundMessage="The project has no reward model"
        searchable
        value={model}
        onChange={setModel}
      />
      {add.error && <Failure error={add.error} />}
      <Group justify="flex-end">
        <Button disabled={!model} loading={add.isPending} onClick={() => add.mutate()}>
          Score the answers
        </Button>
      </Group>
    </Stack>
  );
}
