import { Button, Kbd } from "@mantine/core";
import { useState } from "react";
import { AnswerCard } from "../AnswerCard";
import type { KeyHelp } from "../dialogs";
import { TaskFrame, useAtWork, type TaskProperties } from "../TaskFrame";
import { stepOf } from "../useTaskKeys";
import { equalTo, firstOfEqual } from "./ranks";

interface Choice {
  key: string;
  label: string;
  ranks: [number, number];
  bothBad: boolean;
}

const BETTER: Choice[] = [
  { key: "A", label: "A is better", ranks: [1, 2], bothBad: false },
  { key: "B", label: "B is better", ranks: [2, 1], bothBad: false },
];
const EQUAL: Choice[] = [
  { key: "T", label: "Tie", ranks: [1, 1], bothBad: false },
  { key: "X", label: "Both are bad", ranks: [1, 1], bothBad: true },
];
const HELP: KeyHelp = {
  title: "How to choose",
  text: "Choose the better of two answers. One key, or one button, submits and brings the next item; U takes it back.",
  keys: [
    [["A"], "A is better"],
    [["B"], "B is better"],
    [["T"], "both are equally good"],
    [["X"], "both are bad"],
    [["←", "→"], "marks another answer"],
    [["↑", "↓"], "scrolls the marked answer"],
  ],
};
const HELP_WITH_QUESTIONS: KeyHelp = {
  ...HELP,
  text: "Choose the better of two answers, and answer the questions below. What you do is saved as you go.",
  keys: [...HELP.keys, [["Enter"], "submits"]],
};

/** Two answers side by side; one key or button decides. */
export function PairTask(properties: TaskProperties) {
  const { task } = properties;
  const at = useAtWork(properties);
  const first = firstOfEqual(task.answers);
  const shown = task.answers.filter(({ key }) => first[key] === key);
  const [focused, setFocused] = useState("A");
  // No one can prefer one of two identical answers.
  const choices = shown.length > 1 ? [...BETTER, ...EQUAL] : EQUAL;
  const asks = task.questions.length > 0;
  const before = at.work.levels[""];
  const wasChosen = ({ ranks, bothBad }: Choice) =>
    before?.A === ranks[0] && before.B === ranks[1] && at.work.bothBad === bothBad;
  const choose = ({ ranks, bothBad }: Choice) => {
    // Kept, so that it is seen again after an undo.
    at.change({ levels: { "": { A: ranks[0], B: ranks[1] } }, bothBad });
    // With questions a choice is not all that there is to say.
    if (!asks) at.send({ ranks: [...ranks], both_bad: bothBad });
  };
  const chosen = choices.find(wasChosen);
  const press = (key: string, target: EventTarget | null) => {
    const choice = choices.find((one) => one.key === key);
    if (choice) choose(choice);
    else if (stepOf(key, target)) setFocused(shown.at(focused === "A" ? -1 : 0)!.key);
    else return false;
    return true;
  };
  return (
    <TaskFrame
      {...properties}
      at={at}
      label="Your choice"
      columns={shown.length}
      deck={
        <div role="group" aria-label="Which is better?" className="rank-choices">
          {choices.map((choice) => (
            <Button
              key={choice.key}
              variant={wasChosen(choice) ? "filled" : BETTER.includes(choice) ? "light" : "default"}
              aria-pressed={wasChosen(choice)}
              aria-keyshortcuts={choice.key}
              rightSection={
                <Kbd size="xs" visibleFrom="sm" aria-hidden>
                  {choice.key}
                </Kbd>
              }
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => choose(choice)}
            >
              {choice.label}
            </Button>
          ))}
        </div>
      }
      submit={asks ? { label: chosen ? "Submit" : "Choose first", ready: !!chosen } : undefined}
      onSubmit={() => asks && chosen && at.send({ ranks: [...chosen.ranks], both_bad: chosen.bothBad })}
      press={press}
      help={asks ? HELP_WITH_QUESTIONS : HELP}
    >
      {shown.map((answer) => (
        <AnswerCard
          key={answer.key}
          answer={answer}
          equal={equalTo(answer.key, first)}
          followUps={task.prompt.follow_ups}
          focused={focused === answer.key}
          onFocus={() => setFocused(answer.key)}
        />
      ))}
    </TaskFrame>
  );
}
