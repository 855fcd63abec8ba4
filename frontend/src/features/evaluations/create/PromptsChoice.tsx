import {
  Alert,
  Button,
  FileInput,
  Group,
  Modal,
  NumberInput,
  Radio,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { datasetsQuery } from "../../../api/datasets/datasets";
import {
  addPromptSet,
  knownPromptSetsQuery,
  type PromptSet,
  promptSetsQuery,
} from "../../../api/evaluation/promptSets";
import { useMay } from "../../../api/accounts/session";
import { Failure } from "../../../shared/Feedback";
import { SendForm } from "../../../shared/forms/SendForm";
import { count, counted } from "../../../shared/format/format";
import { messageAt } from "../entrants/draft";
import { useByName } from "../../../shared/forms/useByName";

export interface PromptsDraft {
  from: "set" | "dataset";
  set: string | null;
  dataset: string | null;
  split: "all" | "train" | "held_out";
  limit: number | string;
}

export const NO_PROMPTS: PromptsDraft = {
  from: "set",
  set: null,
  dataset: null,
  split: "held_out",
  limit: "",
};

function usePrompts(project: string, draft: PromptsDraft) {
  return {
    sets: useByName((name) => promptSetsQuery(project, name), { chosen: [draft.set] }),
    datasets: useByName((name) => datasetsQuery(project, name ? { name } : undefined), {
      chosen: [draft.dataset],
    }),
  };
}

/** How many prompts are chosen at most, null where it is not known. A dataset's equal prompts count once. */
export function usePromptCount(project: string, draft: PromptsDraft): number | null {
  const { sets, datasets } = usePrompts(project, draft);
  const dataset = datasets.data?.find((one) => one.name === draft.dataset);
  const all =
    draft.from === "set"
      ? sets.data?.find((one) => one.name === draft.set)?.prompts
      : dataset &&
        { all: dataset.rows, held_out: dataset.held_out_rows, train: dataset.rows - dataset.held_out_rows }[
          draft.split
        ];
  if (all === undefined) return null;
  return draft.limit === "" ? all : Math.min(all, Number(draft.limit));
}

interface Properties {
  project: string;
  draft: PromptsDraft;
  onChange: (draft: PromptsDraft) => void;
  errors: Record<string, string>;
}

export function PromptsChoice({ project, draft, onChange, errors }: Properties) {
  const { sets, datasets } = usePrompts(project, draft);
  const mayWrite = useMay(project, "write");
  const [adding, add] = useDisclosure();
  const set = (change: Partial<PromptsDraft>) => onChange({ ...draft, ...change });
  const error = (field: string) => messageAt(errors, `prompts.${field}`);
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Prompts from"
        style={{ alignSelf: "flex-start" }}
        data={[
          { value: "set", label: "A prompt set" },
          { value: "dataset", label: "A dataset" },
        ]}
        value={draft.from}
        onChange={(from) => set({ from: from as PromptsDraft["from"] })}
      />
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
        {draft.from === "set" ? (
          <Select
            label="Prompt set"
            required
            searchable
            allowDeselect={false}
            placeholder={sets.data && !sets.data.length ? "No prompt sets yet: add one" : "Choose one"}
            onSearchChange={sets.onSearchChange}
            data={(sets.data ?? []).map((one) => ({
              value: one.name,
              label: `${one.name} · ${counted(one.prompts, "prompt")}${one.turns > 1 ? ` of ${one.turns} turns` : ""}`,
            }))}
            value={draft.set}
            error={error("set")}
            onChange={(value) => set({ set: value })}
          />
        ) : (
          <>
            <Select
              label="Dataset"
              required
              searchable
              allowDeselect={false}
              placeholder="Choose one"
              onSearchChange={datasets.onSearchChange}
              data={(datasets.data ?? []).map((one) => ({
                value: one.name,
                label: `${one.name} · ${count(one.rows)} ${one.kind}`,
              }))}
              value={draft.dataset}
              error={error("dataset")}
              onChange={(value) => set({ dataset: value })}
            />
            <Select
              label="Rows"
              data={[
                { value: "held_out", label: "held-out rows" },
                { value: "train", label: "training rows" },
                { value: "all", label: "all rows" },
              ]}
              value={draft.split}
              allowDeselect={false}
              error={error("split")}
              onChange={(value) => value && set({ split: value as PromptsDraft["split"] })}
            />
          </>
        )}
        <NumberInput
          label="At most"
          description="Prompts, drawn at random; all of them when empty"
          min={1}
          max={20_000}
          allowDecimal={false}
          value={draft.limit}
          error={error("limit")}
          onChange={(limit) => set({ limit })}
        />
      </SimpleGrid>
      {draft.from === "set" && mayWrite && (
        <Group>
          <Button variant="default" size="xs" onClick={add.open}>
            Add a prompt set
          </Button>
        </Group>
      )}
      <Modal opened={adding} onClose={add.close} title="Add a prompt set" size="lg">
        <AddPromptSet
          project={project}
          onMade={(made) => {
            add.close();
            set({ from: "set", set: made.name });
          }}
        />
      </Modal>
    </Stack>
  );
}

function AddPromptSet({ project, onMade }: { project: string; onMade: (made: PromptSet) => void }) {
  const client = useQueryClient();
  const known = useQuery(knownPromptSetsQuery(project));
  const [way, setWay] = useState<"file" | "known">("file");
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const make = useMutation({
    mutationFn: () =>
      addPromptSet(
        project,
        way === "file" ? { file, name: name.trim() } : { known: chosen, name: name.trim() },
      ),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: promptSetsQuery(project).queryKey });
      onMade(made);
    },
  });
  return (
    <SendForm send={make} label="Add it" disabled={way === "file" ? !file : !chosen}>
      <SegmentedControl
        aria-label="Source"
        data={[
          { value: "file", label: "A file" },
          { value: "known", label: "A known benchmark" },
        ]}
        value={way}
        onChange={(value) => setWay(value as typeof way)}
      />
      {way === "file" ? (
        <FileInput
          label="File"
          description="FastChat, AlpacaEval or Arena-Hard questions, or JSON lines with `prompt`; also gzipped"
          placeholder="Choose a file"
          required
          clearable
          value={file}
          onChange={setFile}
        />
      ) : (
        <Radio.Group label="Benchmark" value={chosen} onChange={setChosen}>
          <Stack gap="xs" mt="xs">
            {(known.data ?? []).map((one) => (
              <Radio
                key={one.name}
                value={one.name}
                label={one.title}
                description={`${one.name}; licence ${one.licence}; fetched from ${one.source}`}
                styles={{ description: { overflowWrap: "anywhere" } }}
              />
            ))}
          </Stack>
          {known.error && <Failure error={known.error} />}
          <Alert color="gray" mt="sm" p="xs">
            <Text size="sm">
              Published prompts are not bundled: the server downloads them from where their authors publish
              them.
            </Text>
          </Alert>
        </Radio.Group>
      )}
      <TextInput
        label="Name"
        placeholder={way === "file" ? "made from the file's" : (chosen ?? "its own")}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </SendForm>
  );
}
