import { useEffect } from "react";

interface Actions {
  /** Whether a dialog has the keyboard. */
  off: boolean;
  submit: () => void;
  undo: () => void;
  skip: () => void;
  help: () => void;
  note: () => void;
  /** Comes first: whether something under way took the key. */
  grab: (key: string, event: KeyboardEvent) => boolean;
  /** What else the task takes, letters in upper case; whether it took this one. */
  press: (key: string, target: EventTarget | null) => boolean;
}

function within(target: EventTarget | null, selector: string): boolean {
  return target instanceof HTMLElement && target.closest(selector) !== null;
}

/** The whole page listens, except where a key has a meaning of its own. */
export function useTaskKeys(actions: Actions): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || actions.off) return;
      if (within(event.target, "input:not([type=radio]), textarea, select, [role=dialog], [role=menu]"))
        return;
      const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
      // A key that is held down hands in nothing, and ranks nothing twice.
      if (event.repeat && !key.startsWith("Arrow")) return;
      if (actions.grab(key, event)) {
        event.preventDefault();
        return;
      }
      if (key === "Enter") {
        if (within(event.target, "button, a, label")) return;
        actions.submit();
      } else if (key === "U") actions.undo();
      else if (key === "S") actions.skip();
      else if (key === "M") actions.note();
      else if (key === "?") actions.help();
      else if (!actions.press(key, event.target)) return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });
}

/** The step of an arrow key among answers; 0 of any other, and where text scrolls sideways. */
export function stepOf(key: string, target: EventTarget | null): number {
  if (within(target, "input, .rank-code, .markdown-code, .markdown-table")) return 0;
  return key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
}
