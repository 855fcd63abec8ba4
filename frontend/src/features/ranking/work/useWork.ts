import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { saveDraft, type Task } from "../../../api/evaluation/ranking";
import { useSeconds } from "../useSeconds";
import { draftOf, keep, load, type Work } from "./work";

const DRAFT_MS = 800;

/** The work on one task, saved with every change: here immediately, on the server after a pause in typing
 * unless it is `local`. */
export function useWork(project: string, task: Task, { local = false }: { local?: boolean } = {}) {
  const [work, setWork] = useState<Work>(() => load(task));
  const { read, restart } = useSeconds();
  useEffect(() => restart(load(task).seconds), [restart, task]);

  // The server's copy is for other devices and keeps the lock; this browser's own is what a reload reads. One is on its
  // way at a time: in a silent network each would hold one of the few connections that the rankings need too.
  const underway = useRef<AbortController>(null);
  const tell = useDebouncedCallback((next: Work) => {
    underway.current?.abort();
    underway.current = new AbortController();
    saveDraft(project, task.id, draftOf(next), underway.current.signal).catch(() => undefined);
  }, DRAFT_MS);
  return {
    work,
    change: (next: Partial<Work>) => {
      const whole = { ...work, ...next, seconds: read() };
      setWork(whole);
      keep(task.id, whole);
      if (!local) tell(whole);
    },
    /** Seconds spent, to a tenth, for a task that ends now. */
    end: () => {
      tell.cancel();
      underway.current?.abort();
      return Math.round(10 * read()) / 10;
    },
  };
}
