import { Problem } from "../client";

/** Splits a stream of server-sent events. Feed it text as it comes; it calls back with each event's data and name. */
export class EventParser {
  private rest = "";

  constructor(private readonly onEvent: (data: unknown, name: string) => void) {}

  feed(text: string): void {
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data");
      if (data) this.onEvent(JSON.parse(data), field("event") ?? "message");
    }
  }
}

/** Reads a stream to its end. Throws a `Problem` when the server refuses it. */
export async function readEvents(
  url: string,
  options: RequestInit,
  onEvent: (data: unknown, name: string) => void,
  onOpen?: () => Promise<void> | void,
): Promise<void> {
  const response = await fetch(url, options);
  if (!response.ok || !response.body) throw await Problem.of(response);
  await onOpen?.();
  const events = new EventParser(onEvent);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    events.feed(value);
  }
}
