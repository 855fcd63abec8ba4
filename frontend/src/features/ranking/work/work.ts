import type { Task } from "../../../api/evaluation/ranking";
import type { Replies } from "../questions/replies";
import type { SpanFlag } from "../spans/passages";
import type { Levels } from "../tasks/ranks";
import type { Scores } from "../tasks/scores";

/** What a browser keeps of a task under way, so that a reload or a dead network loses nothing. */
export interface Work {
  /** Levels by criterion; the one ranking of a campaign without criteria is under the empty name. */
  levels: Record<string, Levels>;
  scores: Scores;
  bothBad: boolean;
  /** None: not touched. */
  correction: string | null;
  /** To the campaign's questions. */
  replies: Replies;
  comment: string;
  flag: string;
  spans: SpanFlag[];
  /** The judge's suggestion was in sight. */
  suggested: boolean;
  seconds: number;
}

export const EMPTY: Work = {
  levels: {},
  scores: {},
  bothBad: false,
  correction: null,
  replies: {},
  comment: "",
  flag: "",
  spans: [],
  suggested: false,
  seconds: 0,
};

export function criteriaOf(task: Task): { name: string; description: string }[] {
  return task.criteria.length
    ? task.criteria.map(({ name, description }) => ({ name, description: description ?? "" }))
    : [{ name: "", description: "" }];
}

const place = (task: string) => `steerboard.ranking.${task}`;

/** What this browser knows, else what the server last got from any. */
export function load(task: Task): Work {
  try {
    const kept = localStorage.getItem(place(task.id));
    if (kept) return { ...EMPTY, ...(JSON.parse(kept) as Partial<Work>) };
  } catch {
    // Unreadable: as if nothing was kept.
  }
  const { draft } = task;
  if (!draft) return EMPTY;
  const levels: Record<string, Levels> = { ...draft.criteria_ranks };
  if (draft.ranks) levels[""] = draft.ranks;
  return {
    ...EMPTY,
    levels,
    scores: draft.scores ?? {},
    bothBad: draft.both_bad ?? false,
    correction: draft.correction ?? null,
    replies: draft.replies ?? {},
    comment: draft.comment ?? "",
    flag: draft.flag ?? "",
    spans: draft.spans ?? [],
    suggested: draft.suggestion_visible ?? false,
  };
}

export function keep(task: string, work: Work): void {
  try {
    localStorage.setItem(place(task), JSON.stringify(work));
  } catch {
    // A full storage: the server's draft still has it.
  }
}

/** Whether there is unfinished work on the task in this browser. */
export function begun(task: string): boolean {
  return localStorage.getItem(place(task)) !== null;
}

export function drop(task: string): void {
  localStorage.removeItem(place(task));
}

/** As the server takes it for a draft. */
export function draftOf(work: Work) {
  const { "": overall, ...criteria } = work.levels;
  return {
    ranks: overall && Object.keys(overall).length ? { ...overall } : null,
    criteria_ranks: Object.fromEntries(
      Object.entries(criteria).map(([name, levels]) => [name, { ...levels }]),
    ),
    scores: Object.fromEntries(Object.entries(work.scores).map(([name, scores]) => [name, { ...scores }])),
    both_bad: work.bothBad,
    correction: work.correction,
    replies: { ...work.replies },
    comment: work.comment || null,
    flag: work.flag.trim() || null,
    spans: work.spans,
    suggestion_visible: work.suggested || null,
  };
}
