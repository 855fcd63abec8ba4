import { useLocalStorage } from "@mantine/hooks";

export interface Suggesting {
  /** Whether the judge's suggestion is in sight. */
  visible: boolean;
  toggle: () => void;
}

/** The annotator's own switch, kept in this browser for all campaigns. */
export function useSuggestion(there: boolean): Suggesting {
  const [hidden, setHidden] = useLocalStorage({
    key: "steerboard.suggestion.hidden",
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  return { visible: there && !hidden, toggle: () => setHidden(!hidden) };
}
