import { Alert, Button, Checkbox, Group, Select, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { evaluationKeys } from "../../api/evaluation/evaluations";
import type { Fields } from "../../api/evaluation/form";
import { Failure } from "../../shared/Feedback";
import { LeftOutRows } from "./LeftOutRows";
import { FileChoice } from "./parts";

type Found = Schemas["AnswersImported"] | Schemas["JudgmentsImported"];

interface Properties<T extends Found> {
  project: string;
  /** What the server calls a format, with its label. */
  formats: Record<string, string>;
  send: (fields: Fields) => Promise<T>;
  /** What was imported; `good` where there is something to be glad of. */
  result: (found: T) => { good: boolean; title: string; text: ReactNode };
  onDone: () => void;
  /** Offer another file afterwards. */
  more?: boolean;
  hint?: string;
  /** The form's own fields. */
  children: ReactNode;
}

/** A file of answers or judgments that were made elsewhere. */
export function ImportFile<T extends Found>({
  project,
  formats,
  send,
  result,
  onDone,
  more,
  hint,
  children,
}: Properties<T>) {
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [format, setFormat] = useState("auto");
  const [skip, setSkip] = useState(false);
  const sent = useMutation({
    mutationFn: () => send({ file, format, bad_rows: skip ? "skip" : "refuse" }),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  if (sent.data) {
    const { good, title, text } = result(sent.data);
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
          {more && (
            <Button variant="default" onClick={() => sent.reset()}>
              Another file
            </Button>
          )}
          <Button onClick={onDone}>Done</Button>
        </Group>
      </Stack>
    );
  }
  const choices = Object.entries({ auto: "found out from the file", ...formats });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        sent.mutate();
      }}
    >
      <Stack>
        {hint && (
          <Text size="sm" c="dimmed">
            {hint}
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
        {children}
        <Checkbox
          label="Leave out rows that cannot be read, instead of refusing the file"
          checked={skip}
          onChange={(event) => setSkip(event.currentTarget.checked)}
        />
        {sent.error && <Failure error={sent.error} />}
        <Group justify="flex-end">
          <Button type="submit" disabled={!file} loading={sent.isPending}>
            Import
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
