import { Alert, Button, Checkbox, Group, Modal, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { type Evaluation, importAnswers } from "../../api/evaluations";
import { Failure } from "../../shared/Feedback";
import { count } from "../../shared/format";
import { FileChoice } from "./parts";
import { LeftOutRows } from "./LeftOutRows";

interface Properties {
  project: string;
  evaluation: Evaluation;
  opened: boolean;
  onClose: () => void;
}

export function ImportAnswers({ opened, onClose, ...rest }: Properties) {
  return (
    <Modal opened={opened} onClose={onClose} title="Answers from a file" size="lg">
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
  const [file, setFile] = useState<File | null>(null);
  const [format, setFormat] = useState("auto");
  const [name, setName] = useState("");
  const [family, setFamily] = useState("");
  const [skip, setSkip] = useState(false);
  const send = useMutation({
    mutationFn: () =>
      importAnswers(project, evaluation.id, {
        file,
        format,
        name: name.trim(),
        family: family.trim(),
        bad_rows: skip ? "skip" : "refuse",
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: [project, "evaluation"] }),
  });
  if (send.data) return <Imported found={send.data} onDone={onDone} onMore={() => send.reset()} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate();
      }}
    >
      <Stack>
        <Text size="sm" c="dimmed">
          Each row is about the prompt of its id, else of its text, else of its place in the file.
        </Text>
        <FileChoice label="Choose a file" accept=".json,.jsonl,.gz" file={file} onFile={setFile} />
        <Select
          label="Format"
          allowDeselect={false}
          value={format}
          onChange={(value) => value && setFormat(value)}
          data={[
            { value: "auto", label: "found out from the file" },
            { value: "fastchat", label: "FastChat (MT-Bench, Vicuna)" },
            { value: "alpaca_eval", label: "AlpacaEval" },
            { value: "arena_hard", label: "Arena-Hard" },
          ]}
        />
        <TextInput
          label="Name of the entrant"
          description="For a file of one model; several are named by the file"
          placeholder="as in the file"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label="Family"
          description="Of models: gpt, llama, qwen; to see whether a judge prefers its own"
          placeholder="known from the model's name"
          value={family}
          onChange={(event) => setFamily(event.currentTarget.value)}
        />
        <Checkbox
          label="Leave out rows that cannot be read, instead of refusing the file"
          checked={skip}
          onChange={(event) => setSkip(event.currentTarget.checked)}
        />
        {send.error && <Failure error={send.error} />}
        <Group justify="flex-end">
          <Button type="submit" disabled={!file} loading={send.isPending}>
            Import
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Imported({
  found,
  onDone,
  onMore,
}: {
  found: Schemas["AnswersImported"];
  onDone: () => void;
  onMore: () => void;
}) {
  return (
    <Stack>
      <Alert
        color={found.matched ? "teal" : "orange"}
        variant="light"
        title={`${count(found.matched)} answers of ${count(found.rows)} rows are in`}
      >
        <Text size="sm">
          {found.entrants.map((one) => one.name).join(", ") || "No entrant"}, read as {found.format}.
          {found.duplicates > 0 && ` ${count(found.duplicates)} answers were there twice; the newest counts.`}
          {found.short > 0 && ` ${count(found.short)} answers have fewer turns than their prompt.`}
        </Text>
      </Alert>
      <LeftOutRows
        unmatched={found.unmatched}
        unmatchedRows={found.unmatched_rows}
        skipped={found.skipped}
        skippedRows={found.skipped_rows}
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onMore}>
          Another file
        </Button>
        <Button onClick={onDone}>Done</Button>
      </Group>
    </Stack>
  );
}
