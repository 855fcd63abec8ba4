import { Stack, Table, Text } from "@mantine/core";
import { count, seconds } from "../../../../shared/format/format";
import { ComparisonView } from "../comparison/ComparisonView";
import { asPercent, Figure, plain, type Report } from "../Figure";
import { Facts } from "../../../../shared/Facts";
import { Section, Warnings } from "./Section";

type Human = Report["human"][number];

/** What people of one campaign say, by one criterion. */
export function HumanSection({ human, headline }: { human: Human; headline?: string }) {
  const title = human.criterion ? `${human.campaign}: ${human.criterion}` : human.campaign;
  return (
    <Section
      title={title}
      headline={headline}
      badge={{ text: human.state, color: human.state === "open" ? "blue" : "gray" }}
      about="People, blind. The score of rank r among N answers is N + 1 − r; annotators are averaged within an item."
    >
      <Warnings warnings={human.warnings} />
      <Facts
        facts={[
          ["Items done", `${count(human.done_items)} of ${count(human.items)}`],
          ["Rankings", count(human.rankings), `overlap ${human.overlap}`],
          [
            "Krippendorff's alpha",
            <Figure key="alpha" of={human.alpha} stacked={false} />,
            "agreement, ordinal; 1 is full, 0 is chance",
          ],
        ]}
      />
      <ComparisonView comparison={human.comparison} score="Mean rank score" />
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
              <Table.Th ta="right">Gold pairs right</Table.Th>
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
