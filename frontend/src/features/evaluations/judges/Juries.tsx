import {
  Alert,
  Badge,
  Button,
  Card,
  Group,
  Modal,
  MultiSelect,
  Radio,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../../api/accounts/session";
import { type Evaluation, evaluationKeys, placeOf } from "../../../api/evaluation/evaluations";
import { addJury, juriesQuery, type Jury, removeJury } from "../../../api/evaluation/judges";
import { ActionRow } from "../../../shared/ActionBar";
import { Failure } from "../../../shared/Feedback";

interface Properties {
  project: string;
  evaluation: Evaluation;
}

/** Judges that count as one source of the report. */
export function Juries({ project, evaluation }: Properties) {
  const juries = useQuery(juriesQuery(project, evaluation));
  const mayWrite = useMay(project, "write");
  const [making, { open, close }] = useDisclosure();
  const found = juries.data?.items ?? [];
  if (evaluation.judges.length < 2 && !found.length) return null;
  return (
    <Stack gap="sm" component="section" aria-label="Juries">
      {juries.error && <Failure error={juries.error} />}
      {found.map((jury) => (
        <JuryRow key={jury.id} project={project} evaluation={evaluation} jury={jury} />
      ))}
      {mayWrite && (
        <div>
          <Button size="xs" variant="default" onClick={open}>
            Make a jury
          </Button>
        </div>
      )}
      <Modal opened={making} onClose={close} title="Make a jury">
        <JuryForm project={project} evaluation={evaluation} onDone={close} />
      </Modal>
    </Stack>
  );
}

function JuryRow({ project, evaluation, jury }: Properties & { jury: Jury }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const remove = useMutation({
    mutationFn: () => removeJury(project, evaluation.id, jury.id),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  return (
    <Card withBorder padding="sm" component="section" aria-label={`Jury ${jury.name}`}>
      <Group justify="space-between">
        <Group gap="xs">
          <Text fw={600}>{jury.name}</Text>
          <Badge color="gray">{jury.rule}</Badge>
          <Text size="sm" c="dimmed">
            {jury.judges.join(", ") || "its judges were deleted"}
          </Text>
        </Group>
        {mayWrite && (
          <Button
            size="compact-sm"
            variant="subtle"
            color="red"
            loading={remove.isPending}
            onClick={() => remove.mutate()}
          >
            Remove
          </Button>
        )}
      </Group>
      {remove.error && <Failure error={remove.error} />}
    </Card>
  );
}

function JuryForm({ project, evaluation, onDone }: Properties & { onDone: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("jury");
  const [judges, setJudges] = useState<string[]>([]);
  const [rule, setRule] = useState<Jury["rule"]>("majority");
  const make = useMutation({
    mutationFn: () => addJury(project, evaluation.id, { name: name.trim(), judges, rule }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate();
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          required
          value={name}
          error={placeOf(make.error, "name")}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <MultiSelect
          label="Judges"
          required
          searchable
          data={evaluation.judges.map((one) => one.name)}
          value={judges}
          error={placeOf(make.error, "judges")}
          onChange={setJudges}
        />
        <Radio.Group
          label="How they decide"
          value={rule}
          onChange={(value) => setRule(value as Jury["rule"])}
        >
          <Stack gap={6} mt="xs">
            <Radio
              value="majority"
              label="Majority"
              description="Majority of the verdicts on each pair of answers"
            />
            <Radio
              value="mean"
              label="Mean"
              description="Mean of the scores, each judge's standardised first"
            />
          </Stack>
        </Radio.Group>
        {judges.length === 2 && rule === "majority" && (
          <Alert color="blue" variant="light">
            Two judges that differ make a tie; three can decide.
          </Alert>
        )}
        <ActionRow error={make.error}>
          <Button type="submit" disabled={judges.length < 2} loading={make.isPending}>
            Create
          </Button>
        </ActionRow>
      </Stack>
    </form>
  );
}
