import { Card, Stack, Title } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { Facts, type Fact } from "../Facts";
import { count } from "../format/format";
import { Reservations, SOURCES } from "./Reservations";
import { asPercent, Figure, type Report } from "./Figure";
import { ItemsLink } from "./ItemsLink";

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
    const rate = <Figure key="rate" of={margin.win_rate} format={asPercent} />;
    facts.push([
      `Win rate against ${margin.over}`,
      by && source && leader ? (
        <ItemsLink key="rate" search={{ a: leader, b: margin.over, source: `${by}:${source}` }}>
          {rate}
        </ItemsLink>
      ) : (
        rate
      ),
    ]);
    facts.push(["Difference of means", <Figure key="difference" of={margin.difference} />]);
  }
  if (over?.length) facts.push(["Over", over.join(", ")]);
  else facts.push(["Items", count(items ?? 0)]);
  return facts;
}

/** Whether the answer is by this source. */
export function isHeadline(report: Report, by: keyof typeof SOURCES, source: string): boolean {
  return report.headline?.by === by && report.headline.source === source;
}

/** What one source comes to, in a sentence; in short of the one whose sentence is the answer. `why`: its comparison's
 * own, for reports of earlier versions. */
export function sourceHeadline(
  report: Report,
  by: keyof typeof SOURCES,
  source: string,
  why: string,
): string {
  const own = report.headline?.sources?.find((one) => one.by === by && one.source === source);
  if (!own || !isHeadline(report, by, source)) return own?.text ?? why;
  return `${own.winner ? `${own.winner} wins` : "No winner"}. The answer above is by this source.`;
}
