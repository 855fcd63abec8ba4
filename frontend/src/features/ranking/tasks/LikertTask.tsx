import { Text, UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { AnswerCard } from "../AnswerCard";
import type { KeyHelp } from "../dialogs";
import { TaskFrame, useAtWork, type TaskProperties } from "../TaskFrame";
import { stepOf } from "../useTaskKeys";
import { equalTo, firstOfEqual, spread } from "./ranks";
import { cellsOf, nextOpen, scoreAt, scoreOf, withScore, type Cell, type Scores } from "./scores";

const HELP: KeyHelp = {
  title: "How to score",
  text: "Give every answer a score by each criterion. A digit scores the marked row and marks the next one that has no score. What you do is saved as you go.",
  keys: [
    [["1", "…", "9"], "scores the marked row; 0 is ten"],
    [["Backspace"], "removes the score"],
    [["←", "→"], "marks another answer"],
    [["↑", "↓"], "scrolls the marked answer"],
    [[",", "."], "marks the previous or next criterion"],
    [["A", "…", "H"], "marks that answer"],
    [["Enter"], "submits"],
  ],
};

/** The answers side by side, each with a scale for every criterion. */
export function LikertTask(properties: TaskProperties) {
  const { task } = properties;
  const at = useAtWork(properties);
  const first = firstOfEqual(task.answers);
  const shown = task.answers.filter(({ key }) => first[key] === key);
  const keys = shown.map((answer) => answer.key);
  const criteria = task.criteria.map(({ name }) => name);
  const cells = cellsOf(keys, criteria);
  const { scores } = at.work;
  const [marked, setMarked] = useState<Cell>(() => nextOpen(cells, scores, cells.at(-1)!));
  const open = cells.filter((cell) => scoreAt(scores, cell) === undefined);

  const give = (cell: Cell, score: number | undefined) => {
    const next = withScore(scores, cell, score);
    at.change({ scores: next });
    setMarked(score === undefined ? cell : nextOpen(cells, next, cell));
  };
  const submit = () => {
    if (open.length) return setMarked(open[0]!);
    const all = Object.keys(first);
    const given = criteria.map((name) => {
      const whole = spread(first, scores[name]!);
      return [name, all.map((key) => whole[key]!)] as const;
    });
    at.send({ scores: Object.fromEntries(given) });
  };
  const press = (key: string, target: EventTarget | null) => {
    const score = scoreOf(key, task.criteria[criteria.indexOf(marked.criterion)]!.points ?? 5);
    const step = stepOf(key, target);
    const turn = key === "." ? 1 : key === "," ? -1 : 0;
    const around = <T,>(list: readonly T[], of: T, by: number) =>
      list[(list.indexOf(of) + by + list.length) % list.length]!;
    if (score !== undefined) give(marked, score);
    else if (key === "Backspace") give(marked, undefined);
    else if (turn) setMarked({ ...marked, criterion: around(criteria, marked.criterion, turn) });
    else if (first[key] !== undefined) setMarked({ ...marked, answer: first[key] });
    else if (step) setMarked({ ...marked, answer: around(keys, marked.answer, step) });
    else return false;
    return true;
  };

  const label = open.length
    ? `Still to score: ${open.length > 1 ? open.length : `${open[0]!.answer}, ${open[0]!.criterion}`}`
    : "Submit";
  const about = task.criteria.find(({ name }) => name === marked.criterion)!;
  return (
    <TaskFrame
      {...properties}
      at={at}
      label="Your scores"
      columns={keys.length}
      deck={
        <Text size="sm" className="rank-about" aria-live="polite">
          <strong>
            {marked.answer}, {about.name}
          </strong>
          {about.description && `: ${about.description}`}
        </Text>
      }
      submit={{ label, ready: !open.length }}
      onSubmit={submit}
      press={press}
      help={HELP}
    >
      {shown.map((answer) => (
        <AnswerCard
          key={answer.key}
          answer={answer}
          equal={equalTo(answer.key, first)}
          followUps={task.prompt.follow_ups}
          focused={marked.answer === answer.key}
          onFocus={() => setMarked({ ...marked, answer: answer.key })}
        >
          <div className="rank-scales">
            {task.criteria.map((criterion) => (
              <Scale
                key={criterion.name}
                answer={answer.key}
                criterion={criterion}
                scores={scores}
                marked={marked.answer === answer.key && marked.criterion === criterion.name}
                onGive={(score) => give({ answer: answer.key, criterion: criterion.name }, score)}
              />
            ))}
          </div>
        </AnswerCard>
      ))}
    </TaskFrame>
  );
}

interface ScaleProperties {
  answer: string;
  criterion: TaskProperties["task"]["criteria"][number];
  scores: Scores;
  marked: boolean;
  onGive: (score: number | undefined) => void;
}

/** One row of buttons, from 1 to the criterion's points. */
function Scale({ answer, criterion, scores, marked, onGive }: ScaleProperties) {
  const { name, low, high } = criterion;
  const given = scoreAt(scores, { answer, criterion: name });
  return (
    <div className="rank-scale" data-marked={marked || undefined}>
      <Text size="xs" fw={600}>
        {name}
      </Text>
      <div role="radiogroup" aria-label={`${answer}, ${name}`} className="rank-points">
        {Array.from({ length: criterion.points ?? 5 }, (_, place) => place + 1).map((score) => (
          <UnstyledButton
            key={score}
            role="radio"
            aria-checked={given === score}
            className="rank-point"
            tabIndex={score === (given ?? 1) ? 0 : -1}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onGive(given === score ? undefined : score)}
          >
            {score}
          </UnstyledButton>
        ))}
      </div>
      {(low || high) && (
        <Text size="xs" c="dimmed" className="rank-ends">
          <span>{low}</span>
          <span>{high}</span>
        </Text>
      )}
    </div>
  );
}
