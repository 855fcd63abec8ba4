import { expect, it } from "vitest";
import { moved, plan, type Place, type Step } from "./reorder";

const waiting = (text: string): Place[] =>
  text.split(" ").map((part) => {
    const [id, priority] = part.split(":");
    return { id: id!.replace("!", ""), priority: Number(priority ?? 0), movable: !id!.includes("!") };
  });

/** The queue as the API has it: the front and the back of a priority are all that it knows. */
function afterwards(queue: Place[], steps: Step[]): Place[] {
  const places = new Map(queue.map((run, at) => [run.id, at]));
  const priorities = new Map(queue.map((run) => [run.id, run.priority]));
  for (const { id, place, priority } of steps) {
    const all = [...places.values()];
    places.set(id, place === "first" ? Math.min(...all) - 1 : Math.max(...all) + 1);
    if (priority !== undefined) priorities.set(id, priority);
  }
  return [...queue].sort(
    (a, b) => priorities.get(b.id)! - priorities.get(a.id)! || places.get(a.id)! - places.get(b.id)!,
  );
}

it("brings every run to every place, and leaves the others in their order", () => {
  const queues = ["a b c d e", "a:9 b:5 c:5 d:5 e:0 f:-3", "a:2 b:2 c:1 d:1 e:1", "a:3 b:2 c:1", "a"];
  for (const text of queues) {
    const queue = waiting(text);
    for (let from = 0; from < queue.length; from += 1) {
      for (let to = 0; to < queue.length; to += 1) {
        const steps = plan(queue, from, to);
        const ids = (runs: Place[]) => runs.map((run) => run.id).join(" ");
        expect(ids(afterwards(queue, steps!)), `${text}: ${from} to ${to}`).toBe(ids(moved(queue, from, to)));
      }
    }
  }
});

it("asks for one step to an end, and for the shorter way to the midst", () => {
  const queue = waiting("a b c d e f");
  expect(plan(queue, 3, 0)).toEqual([{ id: "d", place: "first" }]);
  expect(plan(queue, 3, 5)).toEqual([{ id: "d", place: "last" }]);
  expect(plan(queue, 2, 1)).toEqual([
    { id: "c", place: "first" },
    { id: "a", place: "first" },
  ]);
  expect(plan(queue, 2, 2)).toEqual([]);
});

it("changes the priority as little as the new neighbours need", () => {
  expect(plan(waiting("a:9 b:5 c:0"), 2, 0)).toEqual([{ id: "c", place: "first", priority: 9 }]);
  expect(plan(waiting("a:9 b:5 c:0"), 0, 1)).toEqual([{ id: "a", place: "last", priority: 5 }]);
  expect(plan(waiting("a:9 b:5 c:0"), 1, 2)).toEqual([{ id: "b", place: "last", priority: 0 }]);
});

it("moves nothing that the person may not move, and goes past no run that it does not know", () => {
  expect(plan(waiting("a! b c d!"), 2, 1)).toBeNull();
  expect(plan(waiting("a b c d!"), 2, 1)).toEqual([
    { id: "c", place: "first" },
    { id: "a", place: "first" },
  ]);
  expect(plan(waiting("a! b"), 0, 1)).toBeNull();
  expect(plan(waiting("a b c d"), 2, 1, false)?.every((step) => step.place === "first")).toBe(true);
  expect(plan(waiting("a b c d"), 0, 3, false)).toEqual([{ id: "a", place: "last" }]);
});
