import { Alert, Button, Checkbox, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import type { Schemas } from "../../../api/client";
import { type Evaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import type { Fields } from "../../../api/form";
import { SendForm } from "../../../shared/forms/SendForm";
import { FileChoice } from "../parts";
import { type FileField, fieldsSent } from "./fields";
import { FileFields } from "./FileFields";
import { LeftOutRows } from "./LeftOutRows";

type Found = Schemas["AnswersImported"] | Schemas["JudgmentsImported"];

/** What of files of one sort differs from others. */
export interface FileImport<T extends Found> {
  title: string;
  hint?: string;
  /** What the server calls a format, with its label. */
  formats: Record<string, string>;
  fields: FileField[];
  send: (project: string, evaluation: string, fields: Fields) => Promise<T>;
  /** What was imported; `good` where there is something to be glad of. */
  result: (found: T) => { good: boolean; title: string; text: ReactNode };
}

interface Properties<T extends Found> {
  of: FileImport<T>;
  project: string;
  evaluation: Evaluation;
  opened: boolean;
  onClose: () => void;
}

/** A file that was made elsewhere. Closing it forgets what was typed. */
export function ImportFile<T extends Found>({ opened, onClose, ...rest }: Properties<T>) {
  return (
    <Modal opened={opened} onClose={onClose} title={rest.of.title} size="lg">
      <Form {...rest} onDone={onClose} />
    </Modal>
  );
}

function Form<T extends Found>({
  of,
  project,
  evaluation,
  onDone,
}: Omit<Properties<T>, "opened" | "onClose"> & { onDone: () => void }) {
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [format, setFormat] = useState("auto");
  const [own, setOwn] = useState<Record<string, string>>({});
  const [skip, setSkip] = useState(false);
  const sent = useMutation({
    mutationFn: () => {
      const guard = { file, format, bad_rows: skip ? "skip" : "refuse" };
      return of.send(project, evaluation.id, { ...guard, ...fieldsSent(of.fields, own) });
    },
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  if (sent.data) {
    const { good, title, text } = of.result(sent.data);
    return (
      <Stack>
        <Alert color={good ? "teal" : "orange"} variant="light" title={title}>
          <Text size="sm">{text}</Text>
        </Alert>
        <LeftOutRows
          unmatched={sent.data.unmatched}
          unmatchedRows={sent.data.unmatched_rows}
          skipped={sent.data.skipped}
          skippedRows={sent.data.skipped_rows}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={() => sent.reset()}>
            Another file
          </Button>
          <Button onClick={onDone}>Done</Button>
        </Group>
      </Stack>
    );
  }
  const choices = Object.entries({ auto: "detected from the file", ...of.formats });
  return (
    <SendForm send={sent} label="Import" disabled={!file}>
      {of.hint && (
        <Text size="sm" c="dimmed">
          {of.hint}
        </Text>
      )}
      <FileChoice label="Choose a file" accept=".json,.jsonl,.gz" file={file} onFile={setFile} />
      <Select
        label="Format"
        allowDeselect={false}
        data={choices.map(([value, label]) => ({ value, label }))}
        value={format}
        onChange={(value) => value && setFormat(value)}
      />
      <FileFields
        fields={of.fields}
        evaluation={evaluation}
        values={own}
        onChange={(name, value) => setOwn((before) => ({ ...before, [name]: value }))}
      />
      <Checkbox
        label="Leave out rows that cannot be read, instead of refusing the file"
        checked={skip}
        onChange={(event) => setSkip(event.currentTarget.checked)}
      />
    </SendForm>
  );
}
