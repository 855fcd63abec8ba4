import { List, Text } from "@mantine/core";
import type { Schemas } from "../../api/client";

/** The kinds of sources, as in front of their names. */
export const SOURCES = {
  human: "people of",
  judge: "judge",
  jury: "jury",
  reward: "reward model",
} as const;

/** Why to doubt a verdict, the gravest first. */
export function Reservations({ of }: { of: Schemas["Reservation"][] }) {
  if (!of.length) return null;
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        Reservations
      </Text>
      <List size="sm" spacing={4}>
        {of.map((one) => (
          <List.Item key={one.text} style={{ overflowWrap: "anywhere" }}>
            {one.text}
          </List.Item>
        ))}
      </List>
    </div>
  );
}
