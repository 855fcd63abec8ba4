import { Stack, Table, Text } from "@mantine/core";
import { count, seconds } from "../../format/format";
import { ComparisonView } from "../comparison/ComparisonView";
import { asPercent, Figure, plain, type Report } from "../Figure";
import { Facts, type Fact } from "../../Facts";
import { ItemsLink } from "../ItemsLink";
import { Section, Warnings } from "./Section";

type Human = Report["human"][number];

const UNITS = { ranking: "Rankings", pairwise: "Choices", likert: "Scored items" };

/** What people of one campaign say, by one criterion. */
export function HumanSection({
  human,
  headline,
  opened,
}: {
  human: Human;
  headline?: string;
  opened?: boolean;
}) {
  const title = human.criterion ? `${human.campaign}: ${human.criterion}` : human.campaign;
  return (
    <Section
      title={title}
      headline={headline}
      opened={opened}
      badge={{ text: human.state, color: human.state === "open" ? "blue" : "gray" }}
      about={`People, blind. ${
        human.points ? `Scores from 1 to ${human.points}` : "The score of rank r among N answers is N + 1 − r"
      }; annotators are averaged within an item.`}
    >
      <Warnings warnings={human.warnings} />
      <Facts
        facts={[
          [
            "Items done",
            <ItemsLink key="done" search={{ source: `human:${title}` }}>
              {`${count(human.done_items)} of ${count(human.items)}`}
            </ItemsLink>,
          ],
          [UNITS[human.task_type ?? "ranking"], count(human.rankings), `overlap ${human.overlap}`],
          ...(human.adjudicated
            ? [["Adjudicated", count(human.adjudicated), "decided by a reviewer"] satisfies Fact]
            : []),
          ...(human.task_type === "pairwise"
            ? [["Both bad", count(human.both_bad ?? 0), "count as ties"] satisfies Fact]
            : []),
          [
            "Krippendorff's alpha",
            <Figure key="alpha" of={human.alpha} stacked={false} />,
            "agreement, ordinal; 1 is full, 0 is chance",
          ],
        ]}
      />
      <ComparisonView
        comparison={human.comparison}
        source={`human:${title}`}
        score={human.points ? "Mean score" : "Mean rank score"}
      />
      <Annotators human={human} />
    </Section>
  );
}

function Annotators({ human }: { human: Human }) {
  if (!human.annotators.length) return null;
  return (
    <Stack gap="xs">
      <Table.ScrollContainer minWidth={680}>
        <Table aria-label="Annotators">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Annotator</Table.Th>
              <Table.Th ta="right">Ranked</Table.Th>
              <Table.Th ta="right">Skipped, flagged</Table.Th>
              <Table.Th ta="right">Median time</Table.Th>
              <Table.Th ta="right">First shown is best</Table.Th>
              <Table.Th ta="right">Longer is better</Table.Th>
              <Table.Th ta="right">Gold pairs correct</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {human.annotators.map((row) => (
              <Table.Tr key={row.annotator}>
                <Table.Td>{row.annotator}</Table.Td>
                <Table.Td ta="right">{count(row.rankings)}</Table.Td>
                <Table.Td ta="right">
                  {count(row.skipped)}, {count(row.flagged)}
                </Table.Td>
                <Table.Td ta="right">{seconds(row.median_seconds)}</Table.Td>
                <Table.Td ta="right">
                  <Figure of={row.first_best} format={asPercent} />
                  {row.expected_first_best !== null && (
                    <Text size="xs" c="dimmed">
                      {asPercent(row.expected_first_best)} without bias
                    </Text>
                  )}
                </Table.Td>
                <Table.Td ta="right">
                  <Figure of={row.longer_better} format={asPercent} />
                </Table.Td>
                <Table.Td ta="right">
                  <Figure of={row.gold} format={asPercent} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {human.kappas.length > 0 && (
        <Text size="sm" c="dimmed">
          Cohen&apos;s kappa:{" "}
          {human.kappas
            .map(
              (row) =>
                `${row.a} and ${row.b} ${row.kappa === null ? "–" : plain(2)(row.kappa)} (n = ${count(row.n)})`,
            )
            .join("; ")}
          .
        </Text>
      )}
    </Stack>
  );
}
