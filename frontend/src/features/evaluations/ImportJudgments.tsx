import { Alert, Button, Checkbox, Group, Select, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { type Evaluation, importJudgments } from "../../api/evaluations";
import { Failure } from "../../shared/Feedback";
import { count } from "../../shared/format";
import { LeftOutRows } from "./LeftOutRows";
import { FileChoice } from "./parts";

const FORMATS = [
  { value: "auto", label: "found out from the file" },
  { value: "fastchat_single", label: "FastChat, single answers" },
  { value: "fastchat_pair", label: "FastChat, pairs" },
  { value: "alpaca_eval", label: "AlpacaEval annotations" },
  { value: "arena_hard", label: "Arena-Hard judgments" },
  { value: "arena_bench", label: "arena-bench scores" },
  { value: "vicuna_review", label: "Vicuna reviews" },
];

interface Properties {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}

/** What a judge said elsewhere, as a judge of this evaluation. */
export function ImportJudgments({ project, evaluation, onDone }: Properties) {
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [format, setFormat] = useState("auto");
  const [name, setName] = useState("");
  const [model, setModel] = useState("");
  const [family, setFamily] = useState("");
  const [baseline, setBaseline] = useState<string | null>(null);
  const [add, setAdd] = useState(false);
  const [skip, setSkip] = useState(false);
  const send = useMutation({
    mutationFn: () =>
      importJudgments(project, evaluation.id, {
        file,
        format,
        name: name.trim(),
        model: model.trim(),
        family: family.trim(),
        baseline,
        add_entrants: add,
        bad_rows: skip ? "skip" : "refuse",
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: [project, "evaluation"] }),
  });
  if (send.data) return <Imported found={send.data} onDone={onDone} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate();
      }}
    >
      <Stack>
        <FileChoice label="Choose a file" accept=".json,.jsonl,.gz" file={file} onFile={setFile} />
        <Select
          label="Format"
          allowDeselect={false}
          data={FORMATS}
          value={format}
          onChange={(value) => value && setFormat(value)}
        />
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
          <TextInput
            label="Name of the judge"
            placeholder="the model's"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Model that judged"
            description="Which one, in a file of several judges"
            placeholder="as in the file"
            value={model}
            onChange={(event) => setModel(event.currentTarget.value)}
          />
          <TextInput
            label="Family"
            description="To see whether it prefers its own"
            placeholder="known from the model's name"
            value={family}
            onChange={(event) => setFamily(event.currentTarget.value)}
          />
          <Select
            label="Baseline"
            description="Where an Arena-Hard file names none"
            data={evaluation.entrants.map((one) => one.name)}
            clearable
            value={baseline}
            onChange={setBaseline}
          />
        </SimpleGrid>
        <Checkbox
          label="Enter models that the evaluation does not have"
          description="With the answers that the file repeats, if any"
          checked={add}
          onChange={(event) => setAdd(event.currentTarget.checked)}
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

function Imported({ found, onDone }: { found: Schemas["JudgmentsImported"]; onDone: () => void }) {
  return (
    <Stack>
      <Alert
        color={found.ok ? "teal" : "orange"}
        variant="light"
        title={`${count(found.verdicts)} verdicts of ${count(found.rows)} rows are in`}
      >
        <Text size="sm">
          Judge {found.judge.name}, read as {found.format.replace("_", " ")}: {count(found.ok)} read,{" "}
          {count(found.unparsed)} not read, {count(found.refused)} refused, {count(found.errors)} errors.
          {found.duplicates > 0 && ` ${count(found.duplicates)} are superseded by newer ones.`}
          {found.entrants_added.length > 0 && ` Entered: ${found.entrants_added.join(", ")}.`}
        </Text>
      </Alert>
      <LeftOutRows
        unmatched={found.unmatched}
        unmatchedRows={found.unmatched_rows}
        skipped={found.skipped}
        skippedRows={found.skipped_rows}
      />
      <Group justify="flex-end">
        <Button onClick={onDone}>Done</Button>
      </Group>
    </Stack>
  );
}
