import { useCallback, useEffect, useRef } from "react";

/** Seconds that the page was visible since the last `restart`. A page left alone for long is not counted. */
const IDLE_MS = 120_000;

export function useSeconds(): { read: () => number; restart: (from?: number) => void } {
  const spent = useRef(0);
  const since = useRef<number | null>(null);
  const touched = useRef(0);

  const settle = useCallback((now: number) => {
    if (since.current !== null) {
      const end = Math.min(now, touched.current + IDLE_MS);
      spent.current += Math.max(0, end - since.current);
      since.current = now;
    }
  }, []);

  useEffect(() => {
    const see = () => {
      const now = performance.now();
      settle(now);
      touched.current = now;
      since.current = document.visibilityState === "visible" ? now : null;
    };
    see();
    const names = ["keydown", "pointerdown", "pointermove", "scroll", "wheel"] as const;
    document.addEventListener("visibilitychange", see);
    for (const name of names) window.addEventListener(name, see, { passive: true, capture: true });
    return () => {
      document.removeEventListener("visibilitychange", see);
      for (const name of names) window.removeEventListener(name, see, { capture: true });
    };
  }, [settle]);

  const read = useCallback(() => {
    settle(performance.now());
    return spent.current / 1000;
  }, [settle]);
  const restart = useCallback((from = 0) => {
    spent.current = from * 1000;
    const now = performance.now();
    touched.current = now;
    since.current = document.visibilityState === "visible" ? now : null;
  }, []);
  return { read, restart };
}
