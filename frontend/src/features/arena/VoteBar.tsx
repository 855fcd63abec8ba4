import { Button, Kbd, SimpleGrid } from "@mantine/core";
import type { Verdict } from "../../api/arena/battles";
import { VERDICTS } from "./verdicts";

export function VoteBar({ onVote }: { onVote: (verdict: Verdict) => void }) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="xs" role="group" aria-label="Your vote">
      {VERDICTS.map(({ verdict, label, key }) => (
        <Button
          key={verdict}
          variant={verdict === "a" || verdict === "b" ? "light" : "default"}
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
