import { useEffect } from "react";

interface Actions {
  keys: readonly string[];
  /** Whether a dialog has the keyboard. */
  off: boolean;
  rank: (level: number) => void;
  unrank: () => void;
  tie: () => void;
  submit: () => void;
  undo: () => void;
  skip: () => void;
  help: () => void;
  note: () => void;
  focus: (key: string) => void;
  move: (by: number) => void;
  /** To the next or the last criterion. */
  turn: (by: number) => void;
}

function within(target: EventTarget | null, selector: string): boolean {
  return target instanceof HTMLElement && target.closest(selector) !== null;
}

/** The whole page listens, except where a key has a meaning of its own. */
export function useRankingKeys(actions: Actions): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || actions.off) return;
      if (within(event.target, "input:not([type=radio]), textarea, select, [role=dialog], [role=menu]"))
        return;
      const { key } = event;
      const letter = key.length === 1 ? key.toUpperCase() : "";
      const arrow = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
      // A key that is held down hands in nothing, and ranks nothing twice.
      if (event.repeat && !arrow) return;
      if (/^[1-9]$/.test(key)) actions.rank(Number(key));
      else if (key === "0" || key === "Backspace") actions.unrank();
      else if (key === "=") actions.tie();
      else if (key === "Enter") {
        if (within(event.target, "button, a, label")) return;
        actions.submit();
      } else if (letter === "U") actions.undo();
      else if (letter === "S") actions.skip();
      else if (letter === "M") actions.note();
      else if (key === "?") actions.help();
      else if (key === ".") actions.turn(1);
      else if (key === ",") actions.turn(-1);
      else if (actions.keys.includes(letter)) actions.focus(letter);
      else if (arrow && !within(event.target, "input, .rank-code")) actions.move(arrow);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });
}
