import { QueryClient } from "@tanstack/react-query";
import { expect, it } from "vitest";
import { apply, EventParser, type LiveEvent } from "./live";

it("gives each event once, however the stream is cut", () => {
  const stream =
    'retry: 1000\n\n: still here\n\nid: 7\nevent: run.state\ndata: {"id":7,"type":"run.state","payload":{"state":"running"}}\n\nid: 8\nevent: x\ndata: {"id":8,"type":"x","payload":{}}\n\n';
  for (const size of [1, 3, 50, 1000]) {
    const seen: LiveEvent[] = [];
    const parser = new EventParser((event) => seen.push(event));
    for (let at = 0; at < stream.length; at += size) parser.feed(stream.slice(at, at + size));
    expect(seen.map((event) => event.id)).toEqual([7, 8]);
  }
});

it("shows progress at once, wherever the run is shown, and leaves other runs alone", () => {
  const client = new QueryClient();
  const runs = [
    { id: "a", name: "one", progress: null },
    { id: "b", name: "two", progress: null },
  ];
  client.setQueryData(["p", "pipeline", "x"], { runs });
  client.setQueryData(["p", "run", "a"], { ...runs[0], config: {} });
  client.setQueryData(["p", "run", "a", "metrics"], []);
  const progress = { done: 3, total: 10, unit: "steps", phase: "training" };
  apply("p", client, { id: 1, type: "run.progress", payload: { run_id: "a", name: "one", progress } });
  expect(client.getQueryData(["p", "run", "a"])).toMatchObject({ progress });
  expect(client.getQueryData(["p", "pipeline", "x"])).toEqual({ runs: [{ ...runs[0], progress }, runs[1]] });
  expect(client.getQueryData(["p", "run", "a", "metrics"])).toEqual([]);
});
