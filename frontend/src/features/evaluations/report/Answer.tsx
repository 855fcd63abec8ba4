import { Card, Stack, Title } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { Facts, type Fact } from "../../../shared/Facts";
import { count } from "../../../shared/format/format";
import { Reservations, SOURCES } from "../../../shared/report/Reservations";
import { asPercent, Figure, type Report } from "./Figure";

type Headline = Schemas["Headline"];

/** The report in one screen: who wins, by how much, over whom, by which source, and with which reservations. */
export function Answer({ headline }: { headline: Headline }) {
  return (
    <Card withBorder padding="lg" component="section" aria-label="Answer">
      <Stack gap="md">
        <Title order={2} size="h3" style={{ overflowWrap: "anywhere" }}>
          {headline.text}
        </Title>
        <Facts columns={5} facts={factsOf(headline)} />
        <Reservations of={headline.reservations ?? []} />
      </Stack>
    </Card>
  );
}

function factsOf({ by, source, margin, over, items, winner, leader }: Headline): Fact[] {
  const facts: Fact[] = [];
  if (by && source) facts.push(["Source", `${SOURCES[by]} ${source}`]);
  if (leader) facts.push([winner ? "Winner" : "Highest mean", leader]);
  if (margin) {
    facts.push([
      `Win rate against ${margin.over}`,
      <Figure key="rate" of={margin.win_rate} format={asPercent} />,
    ]);
    facts.push(["Difference of means", <Figure key="difference" of={margin.difference} />]);
  }
  if (over?.length) facts.push(["Over", over.join(", ")]);
  else facts.push(["Items", count(items ?? 0)]);
  return facts;
}

/** What one source comes to, in a sentence. */
export function sourceHeadline(report: Report, by: keyof typeof SOURCES, source: string): string | undefined {
  return report.headline?.sources?.find((one) => one.by === by && one.source === source)?.text;
}
