import { Button, Kbd, SimpleGrid } from "@mantine/core";
import type { Verdict } from "../../api/arena/battles";
import type { Choice } from "./verdicts";

interface Properties {
  choices: Choice[];
  onVote: (verdict: Verdict) => void;
}

export function VoteBar({ choices, onVote }: Properties) {
  return (
    <SimpleGrid
      cols={{ base: 2, md: choices.length === 4 ? 4 : 3, lg: choices.length }}
      spacing="xs"
      role="group"
      aria-label="Your vote"
    >
      {choices.map(({ verdict, label, key }) => (
        <Button
          key={verdict}
          variant={verdict === "tie" || verdict === "all_bad" ? "default" : "light"}
          px="xs"
          aria-keyshortcuts={key}
          rightSection={
            <Kbd size="xs" visibleFrom="sm" aria-hidden>
              {key}
            </Kbd>
          }
          onClick={() => onVote(verdict)}
        >
          {label}
        </Button>
      ))}
    </SimpleGrid>
  );
}
