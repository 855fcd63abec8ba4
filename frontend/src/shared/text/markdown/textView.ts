import { useLocalStorage } from "@mantine/hooks";

/** Whether models' texts have their Markdown rendered, for all pages of this browser. */
export function useTextView() {
  return useLocalStorage<"rendered" | "raw">({
    key: "steerboard.answers",
    defaultValue: "rendered",
    getInitialValueInEffect: false,
    deserialize: (kept) => (kept === "raw" ? "raw" : "rendered"),
    serialize: (view) => view,
  });
}
