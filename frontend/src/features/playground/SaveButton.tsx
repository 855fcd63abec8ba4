import { Autocomplete, Button, Group, Modal, Radio, Select, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { IconBookmark } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { addCollectionRow, collectionsQuery, createCollection } from "../../api/datasets/collections";
import type { Answer, Comparison } from "../../api/models/playground";
import { useMay } from "../../api/accounts/session";
import { Failure } from "../../shared/Feedback";
import { count, signed } from "../../shared/format/format";
import { shown } from "../../shared/forms/condition";
import { targetOf } from "./draft";

type Kind = "preferences" | "instructions";

/** Puts an answer, or one answer over another, into a collection that becomes a dataset. */
export function SaveButton({ project, comparison }: { project: string; comparison: Comparison }) {
  const [opened, dialog] = useDisclosure();
  const mayWrite = useMay(project, "write");
  const ready = comparison.columns.filter((answer) => answer.state === "succeeded" && answer.text);
  if (!mayWrite || !ready.length) return null;
  return (
    <>
      <Button variant="default" leftSection={<IconBookmark size={16} />} onClick={dialog.open}>
        Save
      </Button>
      <Modal opened={opened} onClose={dialog.close} title="Save into a collection">
        <SaveForm project={project} comparison={comparison} ready={ready} onSaved={dialog.close} />
      </Modal>
    </>
  );
}

function SaveForm({
  project,
  comparison,
  ready,
  onSaved,
}: {
  project: string;
  comparison: Comparison;
  ready: Answer[];
  onSaved: () => void;
}) {
  const client = useQueryClient();
  const collections = useQuery(collectionsQuery(project));
  const ordered = [...ready].sort((a, b) => (b.reward ?? 0) - (a.reward ?? 0));
  const [kind, setKind] = useState<Kind>(ready.length > 1 ? "preferences" : "instructions");
  const [best, setBest] = useState(String(ordered[0]!.place));
  const [worst, setWorst] = useState(String(ordered.at(-1)!.place));
  const fitting = (collections.data ?? []).filter((one) => one.kind === kind);
  const [typed, setTyped] = useState<string | null>(null);
  const name = typed ?? fitting[0]?.name ?? `playground-${kind}`;
  const at = (place: string) => ready.find((answer) => String(answer.place) === place)!;
  const same = kind === "preferences" && at(best).text === at(worst).text;
  const source = (answer: Answer) => ({
    from: targetOf(answer),
    score: answer.score_text,
    reward: answer.reward,
    decoding: answer.decoding,
  });

  const save = useMutation({
    mutationFn: async () => {
      const known = (collections.data ?? []).find((one) => one.name === name);
      if (!known) {
        await createCollection(project, { name, kind });
      }
      const { prompt } = comparison;
      return addCollectionRow(project, name, {
        sample:
          kind === "preferences"
            ? { prompt, chosen: at(best).text, rejected: at(worst).text }
            : { prompt, response: at(best).text },
        provenance: {
          comparison: comparison.id,
          reward_model: comparison.reward_model?.name ?? null,
          ...(kind === "preferences"
            ? { chosen: source(at(best)), rejected: source(at(worst)) }
            : { response: source(at(best)) }),
        },
      } as never);
    },
    onSuccess: async (saved) => {
      notifications.show({
        message: `Saved. ${name} now has ${count(saved.rows)}; create a version of it under Datasets.`,
      });
      await client.invalidateQueries({ queryKey: collectionsQuery(project).queryKey });
      onSaved();
    },
  });

  const options = ready.map((answer) => ({
    value: String(answer.place),
    label: [
      targetOf(answer).replace(/^\w+:/, ""),
      answer.score == null ? "" : `at ${shown(answer.score)}`,
      typeof answer.reward === "number" ? `· reward ${signed(answer.reward)}` : "",
    ]
      .filter(Boolean)
      .join(" "),
  }));
  return (
    <Stack>
      <Radio.Group label="What" value={kind} onChange={(value) => setKind(value as Kind)}>
        <Group mt={4}>
          <Radio value="preferences" label="One answer over another" disabled={ready.length < 2} />
          <Radio value="instructions" label="One answer" />
        </Group>
      </Radio.Group>
      <Select
        label={kind === "preferences" ? "Chosen" : "Answer"}
        data={options}
        value={best}
        allowDeselect={false}
        onChange={(value) => value && setBest(value)}
      />
      {kind === "preferences" && (
        <Select
          label="Rejected"
          data={options}
          value={worst}
          allowDeselect={false}
          onChange={(value) => value && setWorst(value)}
          error={same && "These two answers are the same text."}
        />
      )}
      <Autocomplete
        label="Collection"
        description="A new name creates a new collection"
        data={fitting.map((one) => one.name)}
        value={name}
        onChange={setTyped}
      />
      <Text size="xs" c="dimmed">
        Its origin is stored with it.
      </Text>
      {save.error && <Failure error={save.error} />}
      <Group justify="flex-end">
        <Button loading={save.isPending} disabled={!name || same} onClick={() => save.mutate()}>
          Save
        </Button>
      </Group>
    </Stack>
  );
}
