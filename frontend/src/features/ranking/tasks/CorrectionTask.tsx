import { Button, Text, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { differences } from "../../../shared/text/difference";
import { Marked } from "../../../shared/text/Marked";
import { AnswerCard } from "../AnswerCard";
import type { KeyHelp } from "../dialogs";
import { TaskFrame, useAtWork, type TaskProperties } from "../TaskFrame";

const HELP: KeyHelp = {
  title: "How to correct",
  text: "Rewrite the answer as it should be, or accept it as it is. What you write is saved as you go.",
  keys: [
    [["E"], "goes into the text; Escape leaves it"],
    [["D"], "shows what you changed, or the answer"],
    [["Enter"], "submits; Ctrl Enter from within the text"],
  ],
};

/** The answer next to a copy of its text to rewrite. */
export function CorrectionTask(properties: TaskProperties) {
  const { task } = properties;
  const at = useAtWork(properties);
  const field = useRef<HTMLTextAreaElement>(null);
  const [comparing, setComparing] = useState(false);
  const answer = task.answers[0]!;
  const original = answer.turns.at(-1)!;
  const text = at.work.correction ?? original;
  const changed = text.trim() !== original.trim();
  const empty = !text.trim();
  const submit = () => {
    if (empty) return field.current?.focus();
    at.send({ correction: changed ? text : original });
  };
  const press = (key: string) => {
    if (key === "E") field.current?.focus();
    else if (key === "D") setComparing(changed && !comparing);
    else return false;
    return true;
  };
  return (
    <TaskFrame
      {...properties}
      at={at}
      label="Your correction"
      columns={2}
      deck={
        <div className="rank-choices">
          <Button
            variant="default"
            disabled={!changed}
            aria-pressed={comparing && changed}
            onClick={() => setComparing(!comparing)}
          >
            {comparing && changed ? "Show the answer" : "Show changes"}
          </Button>
          <Button variant="default" disabled={!changed} onClick={() => at.change({ correction: null })}>
            Restore
          </Button>
        </div>
      }
      submit={{ label: empty ? "The text is empty" : changed ? "Submit" : "Accept as it is", ready: !empty }}
      onSubmit={submit}
      press={press}
      help={HELP}
    >
      {comparing && changed ? (
        <Changes original={original} text={text} />
      ) : (
        <AnswerCard
          answer={{ ...answer, key: "A" }}
          equal={[]}
          followUps={task.prompt.follow_ups}
          focused={false}
          onFocus={() => undefined}
        />
      )}
      <Textarea
        ref={field}
        className="rank-correction"
        label={answer.turns.length > 1 ? "The last turn as it should be" : "The answer as it should be"}
        maxLength={200_000}
        value={text}
        onChange={(event) => at.change({ correction: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
    </TaskFrame>
  );
}

function Changes({ original, text }: { original: string; text: string }) {
  const [before, after] = differences(original, text);
  return (
    <section className="rank-answer" aria-label="Changes">
      <div className="rank-answer-text" tabIndex={0} role="group" aria-label="Text of the changes">
        <Text size="xs" c="dimmed">
          Before
        </Text>
        <pre className="text">
          <Marked parts={before} mark="own-rejected" />
        </pre>
        <Text size="xs" c="dimmed" mt="sm">
          After
        </Text>
        <pre className="text">
          <Marked parts={after} mark="own-chosen" />
        </pre>
      </div>
    </section>
  );
}
