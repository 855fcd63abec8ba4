// A browser keeps six connections to a server for all of its tabs together: one that no one looks at lets its own go.
const HIDDEN_MS = 15_000;

const seen = () => document.visibilityState === "visible";

/** Aborts once the page has been hidden for a while. `release` it. */
export function whileSeen(): { signal: AbortSignal; release: () => void } {
  const leave = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (!seen()) timer = setTimeout(() => leave.abort(), HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return {
    signal: leave.signal,
    release: () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    },
  };
}

/** Until someone looks at the page, or `stop`. */
export async function untilSeen(stop: AbortSignal): Promise<void> {
  if (seen() || stop.aborted) return;
  await new Promise<void>((resolve) => {
    const look = () => {
      if (!seen() && !stop.aborted) return;
      document.removeEventListener("visibilitychange", look);
      stop.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    stop.addEventListener("abort", look);
  });
}
