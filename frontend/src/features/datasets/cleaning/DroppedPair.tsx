import { Card, SimpleGrid, Text } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import type { DroppedRow } from "../../../api/datasets/cleaning";
import { count, percent } from "../../../shared/format/format";
import { type Answer, answerText, type CallingAnswer } from "../../../shared/text/answers";
import { differences, type Part } from "../../../shared/text/difference";

type Sample = Schemas["SampleOut"];
/** Characters of common text before the first difference. */
const BEFORE = 60;

/** A dropped pair or answer, and of a pair the one that it repeats or contradicts. */
export function DroppedPair({ row }: { row: DroppedRow }) {
  const near = row.rule === "near_duplicate" && row.of_sample ? row.of_sample : undefined;
  return (
    <Card withBorder p="sm">
      <Text size="sm" mb={4}>
        Row {count(row.row)}
        {because(row)}
      </Text>
      <SimpleGrid cols={{ base: 1, md: row.of_sample ? 2 : 1 }} spacing="md">
        <PairText sample={row.sample} title={`Row ${count(row.row)}`} other={near} />
        {row.of_sample && (
          <PairText sample={row.of_sample} title={`Row ${count(row.of_row)}`} other={near && row.sample} />
        )}
      </SimpleGrid>
    </Card>
  );
}

function because(row: DroppedRow): string {
  const match = row.evaluation;
  if (match) {
    const where = match.type === "evaluation" ? "evaluation" : "prompt set";
    const how = match.match === "exact" ? "is" : `has ${percent(match.overlap, 0)} of the words of`;
    return ` ${how} prompt ${count(match.position)} of the ${where} ${match.name}`;
  }
  if (row.of_row === null || row.of_row === undefined) return "";
  if (row.rule === "contradiction") return ` contradicts row ${count(row.of_row)}`;
  const alike = row.similarity ? `, ${percent(row.similarity, 0)} alike` : "";
  return ` repeats row ${count(row.of_row)}${alike}`;
}

/** A row of any kind: a pair has two answers, another row one or none, perhaps with a thumb. */
interface Pair {
  prompt: CallingAnswer[];
  chosen?: Answer;
  rejected?: Answer;
  response?: Answer;
  desirable?: boolean;
  margin?: number;
}

function partsOf({ prompt, chosen, rejected, response, desirable }: Pair): [string, string][] {
  const answer = desirable === undefined ? "response" : desirable ? "desirable" : "undesirable";
  return [
    ...prompt.map((turn) => [turn.role, turn] as const),
    ["chosen", chosen] as const,
    ["rejected", rejected] as const,
    [answer, response] as const,
  ].flatMap(([name, part]) => (part === undefined ? [] : [[name, answerText(part)]]));
}

/** `other`: a pair that is nearly the same, from which the words that differ are marked. */
function PairText({ sample, title, other }: { sample: Sample; title: string; other?: Sample }) {
  const pair = sample.sample as unknown as Pair;
  const parts = partsOf(pair);
  const others = other ? partsOf(other.sample as unknown as Pair) : [];
  const comparable = others.length === parts.length;
  return (
    <div>
      <Text size="xs" fw={600}>
        {title}
      </Text>
      {parts.map(([name, text], at) => (
        <Text key={at} size="sm" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
          <Text span size="xs" c="dimmed">
            {name}{" "}
          </Text>
          {comparable && text !== others[at]![1] ? (
            <Differing parts={differences(text, others[at]![1])[0]} />
          ) : (
            text.trim() || (
              <Text span fs="italic" c="dimmed">
                no visible text
              </Text>
            )
          )}
        </Text>
      ))}
      {pair.margin !== undefined && (
        <Text size="xs" c="dimmed">
          margin {pair.margin}
        </Text>
      )}
    </div>
  );
}

/** From shortly before the first difference on. */
function Differing({ parts }: { parts: Part[] }) {
  const first = parts[0];
  const shown =
    first && !first.own && first.text.length > BEFORE
      ? [{ text: `…${first.text.slice(-BEFORE)}`, own: false }, ...parts.slice(1)]
      : parts;
  return shown.map((part, at) =>
    part.own ? (
      <mark key={at} className="own-rejected">
        {part.text}
      </mark>
    ) : (
      part.text
    ),
  );
}
