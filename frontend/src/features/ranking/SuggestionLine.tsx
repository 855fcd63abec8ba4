import { Switch, Text } from "@mantine/core";
import type { Task } from "../../api/evaluation/ranking";
import { inWords } from "./tasks/ranks";
import type { Suggesting } from "./useSuggestion";

interface Properties {
  suggestion: NonNullable<Task["suggestion"]>;
  /** The answers that are shown. */
  keys: readonly string[];
  suggesting: Suggesting;
}

/** What a judge thinks of the answers, with the switch that hides it. */
export function SuggestionLine({ suggestion, keys, suggesting }: Properties) {
  const { ranks, scores } = suggestion;
  const order = inWords(keys, ranks);
  const given = scores && keys.map((key) => `${key} ${Math.round(10 * scores[key]!) / 10}`).join(", ");
  return (
    <div className="rank-suggestion" role="group" aria-label="Judge's suggestion">
      <Switch
        size="xs"
        label="Judge's suggestion (J)"
        checked={suggesting.visible}
        onChange={suggesting.toggle}
      />
      <Text size="sm" aria-live="polite">
        {suggesting.visible && (given ? `${order} (scores: ${given})` : order)}
      </Text>
    </div>
  );
}
