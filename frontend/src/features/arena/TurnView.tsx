import { Badge, Card, Group, SimpleGrid, type SimpleGridProps, Stack, Text, Title } from "@mantine/core";
import { type Battle, ended, LETTERS, type Side } from "../../api/arena/battles";

type Turn = Battle["turns"][number];

interface Properties {
  turn: Turn;
  /** Who answered, once the vote is given. */
  names: string[] | null;
  waitsFor: string | null;
}

// Wide enough for code and lists: in a narrower column nearly every line would wrap.
const COLUMNS: Record<number, SimpleGridProps["cols"]> = {
  2: { base: 1, sm: 2 },
  3: { base: 1, md: 3 },
  4: { base: 1, sm: 2, lg: 4 },
};

/** One question and its answers: side by side, and one below the other on a phone. */
export function TurnView({ turn, names, waitsFor }: Properties) {
  return (
    <Stack gap="xs" component="section" aria-label="Turn">
      <div>
        <Text size="xs" c="dimmed">
          You
        </Text>
        <pre className="text">{turn.prompt}</pre>
      </div>
      <SimpleGrid cols={COLUMNS[turn.sides.length]} spacing="sm">
        {turn.sides.map((side, place) => (
          <SideCard
            key={place}
            letter={LETTERS[place]!.toUpperCase()}
            side={side}
            name={names?.[place]}
            waitsFor={waitsFor}
          />
        ))}
      </SimpleGrid>
    </Stack>
  );
}

interface SideProperties {
  letter: string;
  side: Side;
  name?: string;
  waitsFor: string | null;
}

function SideCard({ letter, side, name, waitsFor }: SideProperties) {
  const live = !ended(side);
  return (
    <Card withBorder component="article" aria-label={`Answer ${letter}`} padding="sm">
      <Stack gap={6}>
        <Group gap="xs" justify="space-between">
          <Title order={2} size="h5">
            {letter}
          </Title>
          {name && (
            <Badge className="state-badge" tt="none" maw="100%">
              {name}
            </Badge>
          )}
        </Group>
        <div style={{ minHeight: live ? 72 : undefined }} aria-busy={live} aria-live="polite">
          {side.text ? (
            <pre className={live ? "text writing" : "text"}>{side.text}</pre>
          ) : (
            <Text size="sm" c="dimmed">
              {live ? (waitsFor ?? (side.state === "running" ? "writing…" : "waiting…")) : null}
              {side.state === "succeeded" && "An empty answer."}
            </Text>
          )}
          {side.state === "failed" && (
            <Text size="sm" c="var(--mantine-color-error)">
              This answer failed.
            </Text>
          )}
        </div>
        {side.cut && (
          <Text size="xs" c="dimmed">
            cut at its limit
          </Text>
        )}
      </Stack>
    </Card>
  );
}
