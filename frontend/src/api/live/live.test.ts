import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, it, vi } from "vitest";
import { apply, type LiveEvent } from "./live";
import { EventParser } from "./stream";
import { untilSeen, whileSeen } from "./visibility";
import { metricsQuery } from "../runs/runs";

it("gives each event once, however the stream is cut", () => {
  const stream =
    'retry: 1000\n\n: still here\n\nid: 7\nevent: run.state\ndata: {"id":7,"type":"run.state","payload":{"state":"running"}}\n\nid: 8\nevent: x\ndata: {"id":8,"type":"x","payload":{}}\n\n';
  for (const size of [1, 3, 50, 1000]) {
    const seen: LiveEvent[] = [];
    const parser = new EventParser((event) => seen.push(event as LiveEvent));
    for (let at = 0; at < stream.length; at += size) parser.feed(stream.slice(at, at + size));
    expect(seen.map((event) => event.id)).toEqual([7, 8]);
  }
});

it("shows progress immediately, wherever the run is shown, and leaves other runs alone", () => {
  const client = new QueryClient();
  const runs = [
    { id: "a", name: "one", progress: null },
    { id: "b", name: "two", progress: null },
  ];
  client.setQueryData(["p", "pipeline", "x"], { runs });
  client.setQueryData(["p", "run", "a"], { ...runs[0], config: {} });
  client.setQueryData(["p", "pipeline", "x", "report"], { methods: [] });
  const metrics = metricsQuery("p", "a", true).queryKey;
  client.setQueryData(metrics, []);
  const progress = { done: 3, total: 10, unit: "steps", phase: "training" };
  apply("p", client, { id: 1, type: "run.progress", payload: { run_id: "a", name: "one", progress } });
  expect(client.getQueryData(["p", "run", "a"])).toMatchObject({ progress });
  expect(client.getQueryData(["p", "pipeline", "x"])).toEqual({ runs: [{ ...runs[0], progress }, runs[1]] });
  expect(client.getQueryData(metrics)).toEqual([]);
});

it("lets a curve be asked for at its interval, however often progress is reported", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  client.setQueryData(["p", "run", "a"], { id: "a", config: {}, progress: null });
  let asked = 0;
  const { queryKey, refetchInterval } = metricsQuery("p", "a", true);
  const queryFn = () => Promise.resolve([(asked += 1)] as never);
  const stop = new QueryObserver(client, { queryKey, queryFn, refetchInterval }).subscribe(() => {});
  for (let second = 0; second < 30; second += 1) {
    const progress = { done: second, total: 30, unit: "steps", phase: "training" };
    apply("p", client, { id: second, type: "run.progress", payload: { run_id: "a", progress } });
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(asked).toBeGreaterThanOrEqual(9);
  stop();
  vi.useRealTimers();
});

it("does not drop the answer for a curve when runs change faster than it comes", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  let dropped = 0;
  let answered = 0;
  const observer = new QueryObserver(client, {
    queryKey: metricsQuery("p", "a", true).queryKey,
    queryFn: async ({ signal }) => {
      signal.addEventListener("abort", () => (dropped += 1));
      await new Promise((resolve) => setTimeout(resolve, 2000));
      answered += 1;
      return [] as never;
    },
    refetchInterval: 3000,
  });
  const stop = observer.subscribe(() => {});
  for (let at = 0; at < 60; at += 1) {
    apply("p", client, { id: at, type: "run.state", payload: { run_id: "b", state: "running" } });
    await vi.advanceTimersByTimeAsync(500);
  }
  expect(dropped).toBe(0);
  expect(answered).toBeGreaterThanOrEqual(5);
  stop();
  vi.useRealTimers();
});

it("leaves what is outdated outdated when only progress comes", () => {
  const client = new QueryClient();
  client.setQueryData(["p", "runs", {}], { pages: [{ items: [{ id: "a", progress: null }] }] });
  void client.invalidateQueries({ queryKey: ["p", "runs"] });
  apply("p", client, { id: 1, type: "run.progress", payload: { run_id: "a", progress: { done: 1 } } });
  expect(client.getQueryState(["p", "runs", {}])).toMatchObject({ isInvalidated: true });
  expect(client.getQueryData(["p", "runs", {}])).toMatchObject({
    pages: [{ items: [{ progress: { done: 1 } }] }],
  });
});

it("asks once for a burst of changes of an evaluation, and not while an answer is on its way", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  let asked = 0;
  let answer: () => void = () => {};
  const observer = new QueryObserver(client, {
    queryKey: ["p", "evaluation", "e", "report"],
    queryFn: () => {
      asked += 1;
      return new Promise((resolve) => (answer = () => resolve(asked)));
    },
  });
  const stop = observer.subscribe(() => {});
  const ranked = () =>
    apply("p", client, { id: 1, type: "evaluation.changed", payload: { what: "ranking" } });
  answer();
  await vi.advanceTimersByTimeAsync(100);
  for (let at = 0; at < 50; at += 1) ranked();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(2);
  ranked();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked).toBe(2);
  answer();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(3);
  stop();
  vi.useRealTimers();
});

it("closes its connection when no one has looked for a while, and reopens it when someone does", async () => {
  vi.useFakeTimers();
  const visibility = vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
  const turn = (to: "visible" | "hidden") => {
    visibility.mockReturnValue(to);
    document.dispatchEvent(new Event("visibilitychange"));
  };
  const watched = whileSeen();
  turn("hidden");
  await vi.advanceTimersByTimeAsync(10_000);
  turn("visible");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(watched.signal.aborted).toBe(false);
  turn("hidden");
  await vi.advanceTimersByTimeAsync(15_000);
  expect(watched.signal.aborted).toBe(true);
  watched.release();

  let back = false;
  void untilSeen(new AbortController().signal).then(() => (back = true));
  await vi.advanceTimersByTimeAsync(1000);
  expect(back).toBe(false);
  turn("visible");
  await vi.advanceTimersByTimeAsync(0);
  expect(back).toBe(true);
  vi.useRealTimers();
  visibility.mockRestore();
});
