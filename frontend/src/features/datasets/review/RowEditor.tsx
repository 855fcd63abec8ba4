import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { Problem } from "../../../api/client";
import { Failure } from "../../../shared/Feedback";
import { type Fields, labelOf, textsOfSample, withTexts } from "./editedSample";

const WAIT_MS = 600;

interface Properties {
  /** The row as it will be in the next version. */
  sample: Fields;
  save: (sample: Fields) => void;
  saving: boolean;
  error: Error | null;
  /** Whether something typed is not on the server. */
  onUnsaved: (unsaved: boolean) => void;
  onDone: () => void;
}

/** The texts of a row, to be changed. What is typed is kept on the server within a moment, as a pending change. */
export function RowEditor({ sample, save, saving, error, onUnsaved, onDone }: Properties) {
  const [texts, setTexts] = useState(() => textsOfSample(sample));
  const [waiting, setWaiting] = useState(false);
  const [changed, setChanged] = useState(false);
  const send = useDebouncedCallback(
    (next: typeof texts) => {
      setWaiting(false);
      save(withTexts(sample, next));
    },
    { delay: WAIT_MS, flushOnUnmount: true },
  );
  const unsaved = waiting || saving || !!error;
  useEffect(() => onUnsaved(unsaved), [unsaved, onUnsaved]);
  const places = error instanceof Problem && error.code === "bad_row" ? error.places : [];
  const wrong = (place: string) => places.find((one) => one.location === place)?.message;
  return (
    <Stack gap="sm">
      {Object.entries(texts).map(([place, text]) => (
        <Textarea
          key={place}
          label={labelOf(place, sample)}
          autosize
          minRows={place === "margin" ? 1 : 2}
          maxRows={18}
          value={text}
          error={wrong(place)}
          onChange={(event) => {
            const next = { ...texts, [place]: event.currentTarget.value };
            setTexts(next);
            setWaiting(true);
            setChanged(true);
            send(next);
          }}
        />
      ))}
      {error && !places.length && <Failure error={error} retry={() => save(withTexts(sample, texts))} />}
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {waiting || saving
            ? "Saving…"
            : error
              ? "Not saved"
              : changed
                ? "Saved for the next version"
                : "Changes are saved as you type"}
        </Text>
        <Button disabled={unsaved} onClick={onDone}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}
