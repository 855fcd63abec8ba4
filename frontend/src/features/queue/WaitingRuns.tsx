import { Table, VisuallyHidden } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useLayoutEffect, useRef, useState } from "react";
import type { Schemas } from "../../api/client";
import { type QueuedRun, queuesQuery } from "../../api/runs/queue";
import { moveRun } from "../../api/runs/runs";
import { sessionQuery } from "../../api/accounts/session";
import { useNow } from "../../shared/format/clock";
import { Failure } from "../../shared/Feedback";
import { moved, plan, priorityAt, type Step } from "./reorder";
import { WaitingRun } from "./WaitingRun";

interface Change {
  /** The wanted queue; shown immediately, until the API returns the real one. */
  order: QueuedRun[];
  steps: (Omit<Step, "place"> & { place?: Step["place"]; project: string })[];
}

interface Properties {
  queue: Schemas["QueueOut"];
  runs: QueuedRun[];
  /** Whether these are all that wait in the pool. */
  complete: boolean;
}

export function WaitingRuns({ queue, runs, complete }: Properties) {
  const client = useQueryClient();
  const now = useNow();
  const session = useQuery(sessionQuery);
  const [dragged, setDragged] = useState<string | null>(null);
  const [over, setOver] = useState<number | null>(null);
  const [said, setSaid] = useState("");
  const focused = useRef<(HTMLElement | null)[]>([]);
  const [problem, setProblem] = useState<Error | null>(null);
  const move = useMutation({
    // One after the other: each is planned from the order that the one before it shows already.
    scope: { id: `queue ${queue.pool}` },
    mutationFn: async ({ steps }: Change) => {
      for (const { project, id, priority, place } of steps) {
        await moveRun(project, id, { priority, place });
      }
    },
    onError: setProblem,
    // Also after a failure: the run that could not be moved may have started.
    onSettled: () => client.invalidateQueries({ queryKey: queuesQuery.queryKey }),
  });
  const shown = move.isPending ? move.variables.order : runs;

  // A row that moves in the page loses its focus, and with it the next Alt+Arrow.
  useLayoutEffect(() => {
    for (const element of focused.current) {
      if (document.activeElement === document.body) element?.focus();
    }
  }, [shown]);

  const runnable = new Set(
    session.data?.projects.filter((one) => one.allows.includes("run")).map((one) => one.name),
  );
  const isDue = (run: QueuedRun) => !run.not_before || Date.parse(run.not_before) <= now;
  // Paused ones come last whatever their place, so they are not moved.
  const due = shown.filter(isDue);
  const paused = shown.filter((run) => !isDue(run));
  const change = (order: QueuedRun[], steps: Step[] | Omit<Step, "place">[]) => {
    const positions = shown.map((run) => run.position);
    const projects = new Map(shown.map((run) => [run.id, run.project]));
    const active = document.activeElement as HTMLElement | null;
    const row = active?.closest("tr") ?? null;
    setProblem(null);
    focused.current = row ? [active, row] : [];
    move.mutate({
      order: [...order, ...paused].map((run, at) => ({ ...run, position: positions[at]! })),
      steps: steps.map((step) => ({ ...step, project: projects.get(step.id)! })),
    });
  };
  const bring = (from: number, to: number) => {
    const run = due[from];
    if (!run || to < 0 || to >= due.length || from === to) return;
    const places = due.map((one) => ({ ...one, movable: runnable.has(one.project) }));
    const steps = plan(places, from, to, complete);
    if (!steps) {
      setSaid(
        `${run.name} cannot be moved there: a run in between belongs to a project in which you may not move runs.`,
      );
      return;
    }
    const priority = priorityAt(
      places.filter((_, at) => at !== from),
      to,
      run.priority,
    );
    const order = moved(due, from, to).map((one) => (one.id === run.id ? { ...one, priority } : one));
    setSaid(`${run.name} is now ${to + 1} of ${due.length}`);
    change(order, steps);
  };
  const setPriority = (run: QueuedRun, priority: number) => {
    if (priority === run.priority) return;
    const places = new Map(due.map((one, at) => [one.id, at]));
    const order = due
      .map((one) => (one.id === run.id ? { ...one, priority } : one))
      .sort((a, b) => b.priority - a.priority || places.get(a.id)! - places.get(b.id)!);
    setSaid(`${run.name} now has priority ${priority}`);
    change(order, [{ id: run.id, priority }]);
  };

  return (
    <>
      {problem && <Failure error={problem} />}
      <VisuallyHidden role="status">{problem ? "" : said}</VisuallyHidden>
      <Table.ScrollContainer minWidth={340}>
        <Table aria-label={`Runs waiting in pool ${queue.pool}, in order`} aria-busy={move.isPending}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th ta="right">Place</Table.Th>
              <Table.Th visibleFrom="sm">Move</Table.Th>
              <Table.Th>Run</Table.Th>
              <Table.Th visibleFrom="md">Part of</Table.Th>
              <Table.Th>Priority</Table.Th>
              <Table.Th visibleFrom="md">Waiting since</Table.Th>
              <Table.Th visibleFrom="md">Reason</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {[...due, ...paused].map((run, at) => (
              <WaitingRun
                key={run.id}
                run={run}
                queue={queue}
                paused={at >= due.length}
                movable={runnable.has(run.project)}
                first={at === 0}
                last={at >= due.length - 1}
                mark={
                  dragged && over === at
                    ? due.findIndex((one) => one.id === dragged) < at
                      ? "below"
                      : "above"
                    : null
                }
                onBy={(by) => bring(at, by === "first" ? 0 : at + by)}
                onPriority={(priority) => setPriority(run, priority)}
                onDrag={() => setDragged(run.id)}
                onOver={() => dragged && at < due.length && setOver(at)}
                onDrop={() => {
                  if (over !== null)
                    bring(
                      due.findIndex((one) => one.id === dragged),
                      over,
                    );
                }}
                onDragEnd={() => {
                  setDragged(null);
                  setOver(null);
                }}
              />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  );
}
