import { SimpleGrid, Stack, Text } from "@mantine/core";
import { differences } from "../../../shared/text/difference";
import { Marked } from "../../../shared/text/Marked";
import { textPairs } from "./sampleTexts";

type Fields = Record<string, unknown>;

/** Two states of a row: what is the same once, and what differs side by side, marked word by word. */
export function SampleDifference({ before, after }: { before: Fields; after: Fields }) {
  return (
    <Stack gap="xs">
      {textPairs(before, after).map(([name, old, now]) =>
        old === now ? (
          <SameText key={name} name={name} text={now!} />
        ) : (
          <Differing key={name} name={name} old={old} now={now} />
        ),
      )}
    </Stack>
  );
}

/** A row that only one of the datasets has. */
export function WholeSample({ sample }: { sample: Fields }) {
  return (
    <Stack gap="xs">
      {textPairs(sample, sample).map(([name, text]) => (
        <SameText key={name} name={name} text={text!} lines={4} />
      ))}
    </Stack>
  );
}

function SameText({ name, text, lines = 2 }: { name: string; text: string; lines?: number }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <Text size="sm" lineClamp={lines} style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
        {text}
      </Text>
    </div>
  );
}

function Differing({ name, old, now }: { name: string; old?: string; now?: string }) {
  const [left, right] = differences(old ?? "", now ?? "");
  return (
    <div>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <Side label={`${name} before`} absent={old === undefined}>
          <Marked parts={left} mark="own-rejected" />
        </Side>
        <Side label={`${name} after`} absent={now === undefined}>
          <Marked parts={right} mark="own-chosen" />
        </Side>
      </SimpleGrid>
    </div>
  );
}

function Side({ label, absent, children }: { label: string; absent: boolean; children: React.ReactNode }) {
  return (
    <Text size="sm" component="div" role="group" aria-label={label}>
      {absent ? <em>none</em> : <pre className="text">{children}</pre>}
    </Text>
  );
}
