import { Button, Kbd, Text, TextInput } from "@mantine/core";
import type { Task } from "../../../api/evaluation/ranking";
import { quote } from "./passages";
import type { Flagging } from "./useFlagging";

/** Where the passage at hand gets its label, and a note if there is one. */
export function SpanPanel({ answers, flagging }: { answers: Task["answers"]; flagging: Flagging }) {
  const { pending, labels, note, problem } = flagging;
  if (!pending) return null;
  return (
    <div role="group" aria-label="Flag a passage" className="rank-passage">
      <Text size="sm" lineClamp={2} aria-live="polite" className="rank-passage-text">
        {pending.key}: “{quote(answers, pending)}”
      </Text>
      <div className="rank-passage-labels">
        {labels.map((label, at) => (
          <Button
            key={label}
            size="compact-sm"
            variant="default"
            aria-keyshortcuts={String(at + 1)}
            rightSection={
              <Kbd size="xs" visibleFrom="sm" aria-hidden>
                {at + 1}
              </Kbd>
            }
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => flagging.flag(label)}
          >
            {label}
          </Button>
        ))}
        <TextInput
          id="rank-span-note"
          size="xs"
          aria-label="Note on the passage"
          placeholder="Note (N)"
          maxLength={1000}
          value={note}
          onChange={(event) => flagging.setNote(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape" || event.key === "Enter") event.currentTarget.blur();
          }}
        />
        <Button size="compact-sm" variant="subtle" color="gray" onClick={flagging.cancel}>
          Cancel
        </Button>
      </div>
      {problem && (
        <Text size="xs" c="red" role="alert">
          {problem}
        </Text>
      )}
    </div>
  );
}
