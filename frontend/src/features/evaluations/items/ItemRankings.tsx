import { Badge, Group, Table, Text, Title } from "@mantine/core";
import type { ItemDetail } from "../../../api/evaluation/items";
import { replyInWords } from "../../../shared/campaigns/questionKinds";
import { seconds } from "../../../shared/format/format";

type Ranking = ItemDetail["rankings"][number];
type Ranks = Record<string, number>;

/** Lines of one answer: `Ranks in people: ann 1, ben 2`, by criterion where there are some; scores of Likert tasks. */
export function ranksOf(rankings: Ranking[], entrant: string): string[] {
  const lines = new Map<string, string[]>();
  const add = (label: string, who: string, ranks: Ranks | null | undefined) => {
    const rank = ranks?.[entrant];
    if (rank !== undefined) lines.set(label, [...(lines.get(label) ?? []), `${who} ${rank}`]);
  };
  for (const one of rankings) {
    const what = one.task_type === "likert" ? "Scores" : "Ranks";
    for (const [label, given] of rowsOf(one)) add(`${what} in ${label}`, one.annotator, given);
  }
  return [...lines].map(([label, given]) => `${label}: ${given.join(", ")}`);
}

/** Everything that people did with the item: ranks, comments, flags, and why it was skipped. */
export function ItemRankings({ rankings, names }: { rankings: Ranking[]; names: string[] }) {
  if (!rankings.length) return null;
  return (
    <section aria-label="People's ranks">
      <Title order={3} size="h5" mb="xs">
        People
      </Title>
      <Table.ScrollContainer minWidth={240 + 90 * names.length}>
        <Table aria-label="People's ranks">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Annotator</Table.Th>
              {names.map((name) => (
                <Table.Th key={name} ta="right" style={{ overflowWrap: "anywhere" }}>
                  {name}
                </Table.Th>
              ))}
              <Table.Th>Comment</Table.Th>
              <Table.Th ta="right">Time</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rankings.flatMap((one) =>
              rowsOf(one).map(([label, ranks]) => (
                <Table.Tr key={`${one.campaign} ${one.annotator} ${label}`}>
                  <Table.Td>
                    {one.annotator}
                    <Text size="xs" c="dimmed">
                      {label}
                    </Text>
                  </Table.Td>
                  {names.map((name) => (
                    <Table.Td key={name} ta="right">
                      {ranks?.[name] ?? "–"}
                      {one.gold?.[name] !== undefined && (
                        <Text size="xs" c="dimmed">
                          gold {one.gold[name]}
                        </Text>
                      )}
                    </Table.Td>
                  ))}
                  <Table.Td style={{ overflowWrap: "anywhere" }}>
                    <Group gap={6}>
                      {one.state === "skipped" && <Badge color="gray">skipped</Badge>}
                      {one.flag && (
                        <Badge color="orange" className="state-badge">
                          flagged
                        </Badge>
                      )}
                      {one.both_bad && <Badge color="gray">both bad</Badge>}
                      <Text size="sm">
                        {[one.flag, one.skip_reason, one.comment].filter(Boolean).join("; ")}
                      </Text>
                    </Group>
                    {one.suggestion_visible && (
                      <Text size="xs" c="dimmed">
                        saw a judge&apos;s suggestion
                      </Text>
                    )}
                    {Object.entries(one.replies).map(([question, reply]) => (
                      <Text key={question} size="sm">
                        <Text span inherit c="dimmed">
                          {question}
                        </Text>{" "}
                        {replyInWords(reply)}
                      </Text>
                    ))}
                    {one.spans.length > 0 && <Spans spans={one.spans} />}
                    {one.correction !== null && (
                      <details>
                        <summary className="evaluation-summary">Correction</summary>
                        <pre className="text">{one.correction}</pre>
                      </details>
                    )}
                  </Table.Td>
                  <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                    {seconds(one.seconds)}
                  </Table.Td>
                </Table.Tr>
              )),
            )}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  );
}

function Spans({ spans }: { spans: Ranking["spans"] }) {
  return (
    <ul className="item-spans" aria-label="Flagged passages">
      {spans.map((span) => (
        <li key={span.id}>
          <Badge color="orange" variant="light" className="state-badge">
            {span.label}
          </Badge>{" "}
          <Text span size="sm">
            {span.entrant}: <mark className="flagged">{span.text}</mark>
            {span.note && ` ${span.note}`}
          </Text>
        </li>
      ))}
    </ul>
  );
}

/** What was given by each criterion: ranks, or the scores of a Likert task, which its ranks follow from. */
function rowsOf(one: Ranking): [string, Ranks | null][] {
  const given = one.task_type === "likert" ? one.scores : one.criteria_ranks;
  const criteria = Object.entries(given).map(([criterion, values]): [string, Ranks] => [
    `${one.campaign}, ${criterion}`,
    values,
  ]);
  return one.ranks || !criteria.length ? [[one.campaign, one.ranks], ...criteria] : criteria;
}
