import { SegmentedControl, Stack, Text, UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { AnswerCard } from "../AnswerCard";
import { TaskFrame, useAtWork, type TaskProperties } from "../TaskFrame";
import type { KeyHelp } from "../dialogs";
import { stepOf } from "../useTaskKeys";
import { criteriaOf } from "../work/work";
import { RankStrip } from "./RankStrip";
import {
  competitionRanks,
  equalTo,
  firstOfEqual,
  inWords,
  missing,
  nextUnranked,
  setLevel,
  spread,
  tieWithAbove,
  toggleNext,
  type Levels,
} from "./ranks";

const MOST_NAMED = 3;
const HELP: KeyHelp = {
  title: "How to rank",
  text: "Put the answers in order, the best first: drag the letters at the bottom, press the round buttons of the answers one after another, or use the keys. The sign between two letters makes them a tie. What you do is saved as you go.",
  keys: [
    [["1", "…", "9"], "gives the marked answer this rank; equal ranks are a tie"],
    [["="], "ties the marked answer with the one before it in the order"],
    [["0"], "removes the rank of the marked answer"],
    [["←", "→"], "marks another answer"],
    [["↑", "↓"], "scrolls the marked answer"],
    [["A", "…", "H"], "marks that answer, which takes the next rank if it has none"],
    [["Enter"], "submits"],
  ],
};
const HELP_BY_CRITERIA: KeyHelp = {
  ...HELP,
  keys: [...HELP.keys, [[",", "."], "goes to the previous or next criterion"]],
};

/** The answers side by side, and the order that the annotator gives them. */
export function RankTask(properties: TaskProperties) {
  const { task } = properties;
  const first = firstOfEqual(task.answers);
  const shown = task.answers.filter(({ key }) => first[key] === key);
  const keys = shown.map((answer) => answer.key);
  const criteria = criteriaOf(task);
  const atWork = useAtWork(properties);
  const { work, change } = atWork;
  const [at, setAt] = useState(0);
  const [focused, setFocused] = useState(keys[0]!);

  const criterion = criteria[at]!.name;
  const levelsOf = (name: string) => work.levels[name] ?? {};
  const levels = levelsOf(criterion);
  const setLevels = (next: Levels) => change({ levels: { ...work.levels, [criterion]: next } });
  const left = missing(keys, levels);
  const open = criteria.findIndex(({ name }) => missing(keys, levelsOf(name)).length > 0);

  const turnTo = (place: number) => {
    setAt(place);
    setFocused(nextUnranked(keys, levelsOf(criteria[place]!.name), keys.at(-1)!));
  };
  /** The next one without a rank comes into focus. */
  const ranked = (next: Levels) => {
    setLevels(next);
    setFocused(nextUnranked(keys, next, focused));
  };
  const toggle = (key: string) => {
    setFocused(key);
    setLevels(toggleNext(levels, key));
  };
  const choose = (key: string) => {
    const answer = first[key]!;
    setFocused(answer);
    if (levels[answer] === undefined) setLevels(toggleNext(levels, answer));
  };
  const submit = () => {
    if (left.length) return setFocused(left[0]!);
    if (open >= 0) return turnTo(open);
    const ranksOf = (name: string) => competitionRanks(Object.keys(first), spread(first, work.levels[name]!));
    const named = task.criteria.map(({ name }) => [name, ranksOf(name)] as const);
    atWork.send({ ranks: named.length ? null : ranksOf(""), criteria_ranks: Object.fromEntries(named) });
  };
  const press = (key: string, target: EventTarget | null) => {
    const step = stepOf(key, target);
    if (/^[1-9]$/.test(key)) ranked(setLevel(levels, focused, Number(key)));
    else if (key === "0" || key === "Backspace") {
      if (levels[focused] !== undefined) toggle(focused);
    } else if (key === "=") ranked(tieWithAbove(keys, levels, focused));
    else if (key === ".") turnTo((at + 1) % criteria.length);
    else if (key === ",") turnTo((at - 1 + criteria.length) % criteria.length);
    else if (first[key] !== undefined) choose(key);
    else if (step) setFocused(keys[(keys.indexOf(focused) + step + keys.length) % keys.length]!);
    else return false;
    return true;
  };

  const label = left.length
    ? `Still to rank: ${left.length > MOST_NAMED ? left.length : left.join(", ")}`
    : open < 0
      ? "Submit"
      : `Next: ${criteria[open]!.name}`;
  return (
    <TaskFrame
      {...properties}
      at={atWork}
      label="Your ranking"
      columns={keys.length}
      above={
        task.criteria.length > 0 && (
          <Stack gap={2} mb="xs">
            <SegmentedControl
              size="xs"
              aria-label="Criterion"
              value={String(at)}
              onChange={(value) => turnTo(Number(value))}
              data={criteria.map(({ name }, place) => ({
                value: String(place),
                label: missing(keys, levelsOf(name)).length ? name : `${name} ✓`,
              }))}
            />
            {criteria[at]!.description && (
              <Text size="xs" c="dimmed">
                {criteria[at]!.description}
              </Text>
            )}
          </Stack>
        )
      }
      deck={
        <RankStrip keys={keys} levels={levels} focused={focused} onFocus={setFocused} onChange={setLevels} />
      }
      submit={{ label, ready: !left.length }}
      onSubmit={submit}
      press={press}
      help={task.criteria.length ? HELP_BY_CRITERIA : HELP}
    >
      {shown.map((answer) => (
        <AnswerCard
          key={answer.key}
          answer={answer}
          equal={equalTo(answer.key, first)}
          followUps={task.prompt.follow_ups}
          focused={focused === answer.key}
          onFocus={() => setFocused(answer.key)}
          badge={<RankBadge id={answer.key} level={levels[answer.key]} onToggle={() => toggle(answer.key)} />}
        />
      ))}
      <div className="unseen" aria-live="polite">
        {inWords(keys, levels)}
      </div>
    </TaskFrame>
  );
}

interface BadgeProperties {
  id: string;
  level: number | undefined;
  /** The next rank, or none again. */
  onToggle: () => void;
}

function RankBadge({ id, level, onToggle }: BadgeProperties) {
  return (
    <UnstyledButton
      className="rank-badge"
      data-ranked={level !== undefined || undefined}
      aria-label={level === undefined ? `Give ${id} the next rank` : `${id} has rank ${level}: remove it`}
      onMouseDown={(event) => event.preventDefault()}
      onClick={onToggle}
    >
      {level ?? "–"}
    </UnstyledButton>
  );
}
