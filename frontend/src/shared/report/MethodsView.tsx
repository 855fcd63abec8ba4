import { Table, Text } from "@mantine/core";
import { bestOf } from "./bestOf";
import { shown } from "../forms/condition";
import { PhaseBar } from "../costs/PhaseBar";
import { seconds } from "../format/format";
import { ItemsLink, type SourceName } from "./ItemsLink";
import type { ItemsSearch } from "../search";
import { asPercent, Figure, plain, whole, type Estimate, type Report } from "./Figure";

interface Column {
  title: string;
  about: string;
  of: (row: Report["methods"][number]) => Estimate | undefined;
  /** The same, length-matched. */
  lengthMatched?: (row: Report["methods"][number]) => Estimate | undefined;
  /** The same, length-adjusted. */
  lengthAdjusted?: (row: Report["methods"][number]) => Estimate | undefined;
  format: (value: number) => string;
  /** The items of a row's figure. */
  items: (row: Report["methods"][number]) => ItemsSearch;
}

/** Table 2 of the paper: every entrant by every source that assesses it. */
export function MethodsView({ report }: { report: Report }) {
  const columns: Column[] = [];
  const sources = (field: "human" | "jury" | "judge" | "reward") => [
    ...new Set(report.methods.flatMap((row) => Object.keys(row[field] ?? {}))),
  ];
  const kinds = [
    ["human", "human_win_rate", "human_length_matched", "human_length_adjusted", "rank score, people"],
    ["jury", "jury_win_rate", "jury_length_matched", "jury_length_adjusted", "score, jury"],
    ["judge", "judge_win_rate", "judge_length_matched", "judge_length_adjusted", "score, judge"],
    ["reward", "reward_win_rate", "reward_length_matched", "reward_length_adjusted", "reward"],
  ] as const;
  for (const [mean, rate, matched, adjusted, about] of kinds) {
    for (const source of sources(mean)) {
      const by: SourceName = `${mean}:${source}`;
      columns.push({
        title: source,
        about,
        of: (row) => row[mean]?.[source],
        format: plain(2),
        items: (row) => ({ a: row.entrant, source: by }),
      });
      if (report.methods.some((row) => row[rate]?.[source])) {
        columns.push({
          title: source,
          about: `win rate against ${report.baseline ?? "the baseline"}`,
          of: (row) => row[rate]?.[source],
          lengthMatched: (row) => row[matched]?.[source],
          lengthAdjusted: (row) => row[adjusted]?.[source],
          format: asPercent,
          items: (row) => ({ a: row.entrant, b: report.baseline ?? undefined, source: by }),
        });
      }
    }
  }
  // Reports of earlier versions did not keep it.
  const measured = report.methods.some((row) => row.length.value !== null);
  const longest = Math.max(
    0,
    ...report.costs.map(({ ledger }) => ledger.device_seconds + ledger.failed_device_seconds),
  );
  return (
    <Table.ScrollContainer
      minWidth={(longest ? 490 : 360) + 130 * columns.length}
      scrollAreaProps={{
        viewportProps: { tabIndex: 0, role: "group", "aria-label": "Entrants by every source" },
      }}
    >
      <Table aria-label="Entrants by every source" stickyHeader={false}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Entrant</Table.Th>
            <Table.Th ta="right">Requested score</Table.Th>
            {columns.map((column) => (
              <Table.Th key={`${column.title} ${column.about}`} ta="right">
                {column.title}
                <Text size="xs" c="dimmed" fw={400}>
                  {column.about}
                </Text>
              </Table.Th>
            ))}
            {longest > 0 && (
              <Table.Th>
                Cost
                <Text size="xs" c="dimmed" fw={400}>
                  device time
                </Text>
              </Table.Th>
            )}
            {measured && (
              <Table.Th ta="right">
                Length
                <Text size="xs" c="dimmed" fw={400}>
                  characters
                </Text>
              </Table.Th>
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {report.methods.map((row) => (
            <Table.Tr key={row.entrant}>
              <Table.Td>
                {row.entrant}
                <Text size="xs" c="dimmed">
                  {describe(report, row)}
                </Text>
              </Table.Td>
              <Table.Td ta="right">{row.score === null ? "–" : shown(row.score)}</Table.Td>
              {columns.map((column) => (
                <Table.Td key={`${column.title} ${column.about}`} ta="right">
                  <Found of={column.of(row)} format={column.format} items={column.items(row)} />
                  <LengthMatched
                    of={column.lengthMatched?.(row)}
                    all={column.of(row)}
                    format={column.format}
                    items={column.items(row)}
                  />
                  <LengthAdjusted of={column.lengthAdjusted?.(row)} format={column.format} />
                </Table.Td>
              ))}
              {longest > 0 && (
                <Table.Td miw={110}>
                  <EntrantCost report={report} entrant={row.entrant} longest={longest} />
                </Table.Td>
              )}
              {measured && (
                <Table.Td ta="right">
                  <Figure of={row.length} format={whole} />
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** A figure that leads to its items; without a value there are none. */
function Found({
  of,
  format,
  items,
}: {
  of: Estimate | undefined;
  format: (value: number) => string;
  items: ItemsSearch;
}) {
  const figure = <Figure of={of} format={format} />;
  return of?.n ? <ItemsLink search={items}>{figure}</ItemsLink> : figure;
}

/** Nothing where it is over the same items as the figure of all. */
function LengthMatched({
  of,
  all,
  format,
  items,
}: {
  of: Estimate | undefined;
  all: Estimate | undefined;
  format: (value: number) => string;
  items: ItemsSearch;
}) {
  if (!of || of.n === all?.n) return null;
  return (
    <Text size="xs" c="dimmed" component="div" mt={4}>
      length-matched <Found of={of} format={format} items={{ ...items, length: "similar" }} />
    </Text>
  );
}

/** The win rate at equal length, over all items; nothing where it cannot be estimated. */
function LengthAdjusted({ of, format }: { of: Estimate | undefined; format: (value: number) => string }) {
  if (of?.value == null) return null;
  return (
    <Text size="xs" c="dimmed" component="div" mt={4}>
      length-adjusted <Figure of={of} format={format} />
    </Text>
  );
}

/** What it took to make it, next to what it is worth. */
function EntrantCost({ report, entrant, longest }: { report: Report; entrant: string; longest: number }) {
  const cost = report.costs.find((one) => one.entrant === entrant);
  if (!cost) return "–";
  return (
    <>
      <Text span size="sm">
        {seconds(cost.ledger.device_seconds)}
      </Text>
      <Text size="xs" c="dimmed">
        own run {cost.own_device_seconds == null ? "unknown" : seconds(cost.own_device_seconds)}
      </Text>
      <PhaseBar label={`Cost of ${entrant}`} ledger={cost.ledger} longest={longest} height={8} />
    </>
  );
}

/** Method, best-of-n, and whether it is the baseline. */
function describe(report: Report, { entrant, method }: Report["methods"][number]): string {
  const best = report.entrants.find((one) => one.name === entrant);
  return [method, best && bestOf(best), method && entrant === report.baseline && "baseline"]
    .filter(Boolean)
    .join(", ");
}
