import { useDisclosure } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { Task } from "../../api/evaluation/ranking";
import { AnswerCard } from "./AnswerCard";
import { Help, SkipDialog } from "./dialogs";
import { Prompt } from "./Prompt";
import { RankBar } from "./RankBar";
import { RankStrip } from "./RankStrip";
import {
  competitionRanks,
  inWords,
  missing,
  nextUnranked,
  setLevel,
  tieWithAbove,
  toggleNext,
  type Levels,
} from "./ranks";
import type { Queue } from "./work/useQueue";
import { useRankingKeys } from "./useRankingKeys";
import { useWork } from "./work/useWork";
import { criteriaOf } from "./work/work";

const MOST_NAMED = 3;

interface Properties {
  project: string;
  task: Task;
  queue: Queue;
  instructions: string;
}

/** One item: the prompt, its answers side by side, and the order that the annotator gives them. */
export function TaskView({ project, task, queue, instructions }: Properties) {
  const keys = task.answers.map((answer) => answer.key);
  const criteria = criteriaOf(task);
  const { work, change, end } = useWork(project, task);
  const [at, setAt] = useState(0);
  const [focused, setFocused] = useState(keys[0]!);
  const [helping, help] = useDisclosure();
  const [skipping, skip] = useDisclosure();
  const [noting, note] = useDisclosure(!!work.comment || !!work.flag);
  const [writing, setWriting] = useState(false);
  useEffect(() => {
    if (writing) document.getElementById("rank-comment")?.focus();
  }, [writing]);

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
  const submit = () => {
    if (left.length) return setFocused(left[0]!);
    if (open >= 0) return turnTo(open);
    const ranksOf = (name: string) => competitionRanks(keys, work.levels[name]!);
    const named = task.criteria.map(({ name }) => [name, ranksOf(name)] as const);
    queue.submit(task, {
      ranks: named.length ? null : ranksOf(""),
      criteria_ranks: Object.fromEntries(named),
      comment: work.comment.trim() || null,
      flag: work.flag.trim() || null,
      seconds: end(),
    });
  };
  const move = (by: number) => setFocused(keys[(keys.indexOf(focused) + by + keys.length) % keys.length]!);
  const toggleNote = () => {
    setWriting(!noting);
    note.toggle();
  };

  useRankingKeys({
    keys,
    off: helping || skipping,
    rank: (level) => ranked(setLevel(levels, focused, level)),
    unrank: () => levels[focused] !== undefined && toggle(focused),
    tie: () => ranked(tieWithAbove(keys, levels, focused)),
    submit,
    undo: () => void queue.undo(),
    skip: skip.open,
    help: help.open,
    note: toggleNote,
    focus: setFocused,
    move,
    turn: (by) => turnTo((at + by + criteria.length) % criteria.length),
  });

  const said = left.length
    ? `Still to rank: ${left.length > MOST_NAMED ? left.length : left.join(", ")}`
    : open < 0
      ? "Submit"
      : `Next: ${criteria[open]!.name}`;
  return (
    <div className="rank-task">
      <Prompt messages={task.prompt.messages} />
      <div className="rank-room" data-count={keys.length}>
        <div className="rank-answers">
          {task.answers.map((answer) => (
            <AnswerCard
              key={answer.key}
              answer={answer}
              followUps={task.prompt.follow_ups}
              level={levels[answer.key]}
              focused={focused === answer.key}
              onFocus={() => setFocused(answer.key)}
              onToggle={() => toggle(answer.key)}
            />
          ))}
        </div>
      </div>
      <div className="unseen" aria-live="polite">
        {inWords(keys, levels)}
      </div>
      <RankBar
        strip={
          <RankStrip
            keys={keys}
            levels={levels}
            focused={focused}
            onFocus={setFocused}
            onChange={setLevels}
          />
        }
        criteria={task.criteria.map(({ name, description }) => ({
          name,
          description: description ?? "",
          done: !missing(keys, levelsOf(name)).length,
        }))}
        at={at}
        onAt={turnTo}
        said={said}
        ready={!left.length}
        onSubmit={submit}
        onUndo={() => void queue.undo()}
        mayUndo={queue.mayUndo}
        onSkip={skip.open}
        onHelp={help.open}
        noting={noting}
        onNote={toggleNote}
        work={work}
        onChange={change}
      />
      <Help
        opened={helping}
        onClose={help.close}
        instructions={instructions}
        criteria={task.criteria.length > 0}
      />
      <SkipDialog
        opened={skipping}
        onClose={skip.close}
        onSkip={(reason) => queue.skip(task, { reason, seconds: end() })}
      />
    </div>
  );
}
