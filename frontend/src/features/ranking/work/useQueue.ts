import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { Problem, type Schemas } from "../../../api/client";
import { randomId } from "../../../api/randomId";
import {
  campaignsToRankQuery,
  mineQuery,
  nextTasks,
  type NextTasks,
  skipTask,
  submitRanking,
  type Task,
  undoRanking,
} from "../../../api/evaluation/ranking";
import { sessionQuery } from "../../../api/accounts/session";
import { Outbox, passing, type Parcel } from "../../../shared/outbox/outbox";
import { useOutbox } from "../../../shared/outbox/useOutbox";
import { begun, drop, keep, load, type Work } from "./work";

/** A ranking or a skip. */
interface Done extends Parcel {
  task: string;
  campaign: string;
  kind: "submit" | "skip";
  body: unknown;
}

/** Tasks at hand, the present one included. */
const AHEAD = 3;
const LOOK_AGAIN_MS = 5000;

type Body<Kind extends "Submit" | "Skip"> = Omit<Schemas[Kind], "submission" | "ahead">;

export interface Queue {
  task: Task | null;
  state: NextTasks["state"] | "loading";
  left: number;
  done: number;
  /** Rankings since this page was opened. */
  session: number;
  error: Error | null;
  /** So many rankings wait in the browser, since `problem` keeps them from being sent. */
  stuck: number;
  problem: Error | null;
  refused: readonly Parcel[];
  submit: (task: Task, body: Body<"Submit">) => void;
  skip: (task: Task, body: Body<"Skip">) => void;
  undo: () => Promise<void>;
  mayUndo: boolean;
  forget: (submission: string) => void;
  again: () => void;
}

interface Sent {
  task: Task;
  kind: Done["kind"];
  submission: string;
  work: Work;
}

/** Hands a parcel in. What this person handed in elsewhere for the same item gives way. */
async function deliver(project: string, parcel: Done): Promise<Schemas["Submitted"]> {
  const extra = { submission: parcel.submission, ahead: AHEAD };
  const send = () =>
    parcel.kind === "submit"
      ? submitRanking(project, parcel.task, { ...(parcel.body as Body<"Submit">), ...extra })
      : skipTask(project, parcel.task, { ...(parcel.body as Body<"Skip">), ...extra });
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "task_ended") throw error;
    if (parcel.kind === "skip") return await nextTasks(project, parcel.campaign, AHEAD);
    await undoRanking(project, parcel.task);
    return await send();
  }
}

/** An annotator's tasks: the present one, the next ones at hand, and what is on its way to the server. */
export function useQueue(project: string, user: string, campaign: string): Queue {
  const client = useQueryClient();
  const [tasks, setTasks] = useState<Task[]>([]);
  const [about, setAbout] = useState<Pick<Queue, "state" | "left" | "done">>({
    state: "loading",
    left: 0,
    done: 0,
  });
  const [error, setError] = useState<Error | null>(null);
  const [last, setLast] = useState<Sent[]>([]);
  const [session, setSession] = useState(0);
  const fetching = useRef<Promise<void> | null>(null);
  // Tasks that are done here. An answer that left the server earlier may still offer them.
  const [ended] = useState(() => new Set<string>());

  const take = useCallback(
    (items: Task[], now: Pick<Queue, "state" | "left" | "done">) => {
      const here = items.filter((task) => !ended.has(task.id));
      setTasks((known) => {
        // The one on the screen stays where it is, whatever the server lists first.
        const first = known[0];
        const stays = first && (begun(first.id) || here.some((task) => task.id === first.id));
        return stays ? [first, ...here.filter((task) => task.id !== first.id)] : here;
      });
      setAbout(now);
      setError(null);
    },
    [ended],
  );

  const box = useMemo(
    () =>
      new Outbox<Done>(`steerboard.outbox.${user}.${project}.${campaign}`, async (parcel) => {
        ended.add(parcel.task);
        try {
          const { items, state, left, done } = await deliver(project, parcel);
          if (ended.has(parcel.task)) drop(parcel.task);
          take(items ?? [], { state: state ?? "ready", left, done });
        } catch (problem) {
          if (!passing(problem)) ended.delete(parcel.task);
          // Another tab may have signed in again since: its session has another key.
          if (problem instanceof Problem && [401, 403].includes(problem.status)) {
            await client.fetchQuery({ ...sessionQuery, staleTime: 0 }).catch(() => undefined);
          }
          throw problem;
        }
      }),
    [client, project, user, campaign, take, ended],
  );
  useOutbox(box);

  const fill = useCallback(() => {
    fetching.current ??= (async () => {
      try {
        for (const parcel of box.waiting) ended.add(parcel.task);
        const { items, ...now } = await nextTasks(project, campaign, AHEAD);
        take(items, now);
      } catch (problem) {
        setError(problem as Error);
      } finally {
        fetching.current = null;
      }
    })();
    return fetching.current;
  }, [project, campaign, box, take, ended]);

  useEffect(() => {
    const wake = () => {
      if (document.visibilityState === "visible") void fill();
    };
    wake();
    window.addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    return () => {
      window.removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [fill]);

  const task = tasks[0] ?? null;
  const idle = task === null;
  const away = error !== null && passing(error);
  useEffect(() => {
    // Others may free an item, the owner may resume, the network may come back.
    if (!idle && !away) return;
    void fill();
    const timer = setInterval(() => void fill(), LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [idle, away, fill]);

  const hand = (kind: Done["kind"], done: Task, body: object) => {
    const submission = randomId();
    ended.add(done.id);
    setTasks((known) => known.filter((one) => one.id !== done.id));
    const work = load(done);
    const seen = "suggestion_visible" in body && body.suggestion_visible === true;
    const sent: Sent = { task: done, kind, submission, work: { ...work, suggested: work.suggested || seen } };
    setLast((known) => [...known, sent].slice(-50));
    if (kind === "submit") setSession((known) => known + 1);
    box.add({ submission, task: done.id, campaign, kind, body });
  };

  const undo = async () => {
    const newest = last.at(-1);
    const reopen = (back: Task) => {
      ended.delete(back.id);
      if (newest) keep(back.id, newest.work);
      setLast((known) => known.slice(0, -1));
      if (newest?.kind === "submit") setSession((known) => known - 1);
      setTasks((known) => [back, ...known.filter((one) => one.id !== back.id)]);
      setError(null);
    };
    try {
      if (newest && (await box.takeBack(newest.submission))) return reopen(newest.task);
      const id =
        newest?.task.id ??
        (await client.fetchQuery({ ...mineQuery(project, campaign), staleTime: 0 })).items[0]?.id;
      if (!id) return;
      const back = await undoRanking(project, id);
      reopen(back);
      setAbout(({ done, left }) => ({ state: "ready", done: Math.max(0, done - 1), left: left + 1 }));
    } catch (problem) {
      setError(problem as Error);
    }
    await client.invalidateQueries({ queryKey: campaignsToRankQuery(project).queryKey });
  };

  const waiting = box.waiting.length;
  return {
    ...about,
    task,
    session,
    // Away with work at hand is the banner's matter, not a failure of the page.
    error: away && (task || waiting) ? null : error,
    stuck: box.stuck ? waiting : 0,
    problem: box.stuck ? box.problem : away ? error : null,
    refused: box.all.filter((parcel) => parcel.refused),
    submit: (one, body) => hand("submit", one, body),
    skip: (one, body) => hand("skip", one, body),
    undo,
    mayUndo: (last.length > 0 || about.done > 0) && about.state !== "unqualified",
    forget: (submission) => box.forget(submission),
    again: () => {
      void box.flush();
      void fill();
    },
  };
}
