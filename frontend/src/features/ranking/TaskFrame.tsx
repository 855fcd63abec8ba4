import { useDisclosure } from "@mantine/hooks";
import { useEffect, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import type { Task } from "../../api/evaluation/ranking";
import { Help, SkipDialog, type KeyHelp } from "./dialogs";
import { Prompt } from "./Prompt";
import { FlaggedContext } from "./spans/context";
import { shownSpans, spreadSpans, type SpanFlag } from "./spans/passages";
import { QuestionPanel } from "./questions/QuestionPanel";
import { useQuestions } from "./questions/useQuestions";
import { SpanPanel } from "./spans/SpanPanel";
import { useFlagging } from "./spans/useFlagging";
import { TaskBar } from "./TaskBar";
import { firstOfEqual } from "./tasks/ranks";
import { SuggestionLine } from "./SuggestionLine";
import { useSuggestion, type Suggesting } from "./useSuggestion";
import { useTaskKeys } from "./useTaskKeys";
import type { Queue } from "./work/useQueue";
import { useWork } from "./work/useWork";
import type { Work } from "./work/work";

export interface TaskProperties {
  project: string;
  task: Task;
  queue: Pick<Queue, "submit"> & Partial<Pick<Queue, "skip" | "undo" | "mayUndo">>;
  instructions: string;
  /** The work is kept in this browser only: a reviewer holds no item. */
  local?: boolean;
  /** Flags of others, which are shown. */
  flagged?: readonly SpanFlag[];
}

type Annotation = Partial<
  Pick<Schemas["Submit"], "ranks" | "criteria_ranks" | "scores" | "both_bad" | "correction">
>;

export interface AtWork {
  work: Work;
  change: (next: Partial<Work>) => void;
  /** Hands the item in, with the comment and the flag. */
  send: (annotation: Annotation) => void;
  /** Seconds spent, of an item that ends now. */
  end: () => number;
  suggesting: Suggesting;
}

/** The annotator's work on one item. */
export function useAtWork({ project, task, queue, local }: TaskProperties): AtWork {
  const { work, change, end } = useWork(project, task, { local });
  const first = firstOfEqual(task.answers);
  const { visible, toggle } = useSuggestion(task.suggestion !== null);
  return {
    work,
    change,
    end,
    suggesting: {
      visible,
      toggle: () => {
        // What was in sight once counts as seen, wherever it is hidden afterwards.
        if (task.suggestion) change({ suggested: true });
        toggle();
      },
    },
    send: (annotation) =>
      queue.submit(task, {
        ranks: null,
        criteria_ranks: {},
        scores: {},
        both_bad: false,
        correction: null,
        ...annotation,
        replies: { ...work.replies },
        comment: work.comment.trim() || null,
        flag: work.flag.trim() || null,
        spans: spreadSpans(task.answers, work.spans, first),
        suggestion_visible: task.suggestion ? visible || work.suggested : null,
        seconds: end(),
      }),
  };
}

const PASSAGE_KEYS: KeyHelp["keys"] = [
  [["P"], "flags what is selected, or the first word of the marked answer"],
  [["←", "→"], "then take the next or previous word, with Shift make it longer or shorter; ↑ and ↓ by ten"],
  [["1", "…", "9"], "then flag it with this label; N writes a note, Escape leaves it"],
];

const QUESTION_KEYS: KeyHelp["keys"] = [
  [["Q"], "goes to the first open question, then to the next one; ↑ and ↓ go to another"],
  [["1", "…", "9"], "then makes this choice or takes it back, 0 the tenth; Escape leaves the questions"],
];

const SUGGESTION_KEYS: KeyHelp["keys"] = [[["J"], "shows or hides the judge's suggestion"]];

interface Properties extends TaskProperties {
  at: AtWork;
  label: string;
  /** How many answers share the room. */
  columns: number;
  children: ReactNode;
  above?: ReactNode;
  deck: ReactNode;
  submit?: { label: string; ready: boolean };
  onSubmit: () => void;
  press: (key: string, target: EventTarget | null) => boolean;
  help: KeyHelp;
}

/** What every task has: the prompt, room for the answers, and the bar with its keys and dialogs. */
export function TaskFrame(properties: Properties) {
  const { task, queue, at } = properties;
  const [helping, help] = useDisclosure();
  const [skipping, skip] = useDisclosure();
  const [noting, note] = useDisclosure(!!at.work.comment || !!at.work.flag);
  const [writing, setWriting] = useState(false);
  useEffect(() => {
    if (writing) document.getElementById("rank-comment")?.focus();
  }, [writing]);
  const flagging = useFlagging(task, at.work, at.change);
  const asking = useQuestions(task, at.work, at.change);
  // The task itself comes first, then its questions.
  const replying = (properties.submit?.ready ?? true) && asking.open;
  const onSubmit = () => (replying ? asking.mark(replying.label) : properties.onSubmit());
  const submit =
    replying && properties.submit
      ? { label: `Still to answer: ${replying.label}`, ready: false }
      : properties.submit;
  const first = firstOfEqual(task.answers);
  // Passages are flagged at their places in the raw text.
  const exact = flagging.labels.length > 0 || !!properties.flagged?.length;
  const own = shownSpans(at.work.spans, first);
  const toggleNote = () => {
    setWriting(!noting);
    note.toggle();
  };
  useTaskKeys({
    off: helping || skipping,
    submit: onSubmit,
    undo: () => void queue.undo?.(),
    skip: queue.skip ? skip.open : () => undefined,
    help: help.open,
    note: toggleNote,
    grab: (key, event) => {
      if (flagging.grab(key, event) || asking.grab(key, event)) return true;
      if (key !== "J" || !task.suggestion) return false;
      at.suggesting.toggle();
      return true;
    },
    press: properties.press,
  });
  return (
    <div className="rank-task" data-local={properties.local || undefined}>
      <Prompt messages={task.prompt.messages} />
      <div className="rank-room" data-count={properties.columns} data-task={task.task_type}>
        <div className="rank-answers">
          <FlaggedContext
            value={
              properties.flagged
                ? { spans: properties.flagged, pending: null, exact }
                : { spans: own, pending: flagging.pending, remove: flagging.remove, exact }
            }
          >
            {properties.children}
          </FlaggedContext>
        </div>
      </div>
      <TaskBar
        label={properties.label}
        above={
          <>
            {task.suggestion && (
              <SuggestionLine
                suggestion={task.suggestion}
                keys={Object.keys(first).filter((key) => first[key] === key)}
                suggesting={at.suggesting}
              />
            )}
            <SpanPanel answers={task.answers} flagging={flagging} />
            <QuestionPanel asking={asking} onSubmit={onSubmit} />
            {properties.above}
          </>
        }
        deck={properties.deck}
        submit={submit}
        onSubmit={onSubmit}
        onUndo={queue.undo && (() => void queue.undo?.())}
        mayUndo={queue.mayUndo ?? false}
        onSkip={queue.skip && skip.open}
        onPassage={flagging.labels.length ? flagging.open : undefined}
        onHelp={help.open}
        noting={noting}
        onNote={toggleNote}
        work={at.work}
        onChange={at.change}
      />
      <Help
        opened={helping}
        onClose={help.close}
        instructions={properties.instructions}
        help={{
          ...properties.help,
          keys: [
            ...properties.help.keys,
            ...(task.questions.length ? QUESTION_KEYS : []),
            ...(flagging.labels.length ? PASSAGE_KEYS : []),
            ...(task.suggestion ? SUGGESTION_KEYS : []),
          ],
        }}
      />
      <SkipDialog
        opened={skipping}
        onClose={skip.close}
        onSkip={(reason) => queue.skip?.(task, { reason, seconds: at.end() })}
      />
    </div>
  );
}
