import { Table, Text } from "@mantine/core";
import { bestOf } from "./bestOf";
import { shown } from "../forms/condition";
import { PhaseBar } from "../costs/PhaseBar";
import { seconds } from "../format/format";
import { ItemsLink, type SourceName } from "./ItemsLink";
import type { ItemsSearch } from "../search";
import { asPercent, Figure, plain, whole, type Estimate, type Report } from "./Figure";

type Row = Report["methods"][number];

interface Column {
  title: string;
  about: string;
  of: (row: Row) => Estimate | undefined;
  format: (value: number) => string;
  /** The items of a row's figure; none for one that no list of items gives. */
  items?: (row: Row) => ItemsSearch;
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
      if (!report.methods.some((row) => row[rate]?.[source])) continue;
      const against = (row: Row) => ({ a: row.entrant, b: report.baseline ?? undefined, source: by });
      // Nothing where it is over the same items as the figure of all.
      const lengthMatched = (row: Row) =>
        row[matched]?.[source]?.n === row[rate]?.[source]?.n ? undefined : row[matched]?.[source];
      columns.push(
        {
          title: source,
          about: `win rate against ${report.baseline ?? "the baseline"}`,
          of: (row) => row[rate]?.[source],
          format: asPercent,
          items: against,
        },
        {
          title: source,
          about: "win rate, length-matched",
          of: lengthMatched,
          format: asPercent,
          items: (row) => ({ ...against(row), length: "similar" }),
        },
        {
          title: source,
          about: "win rate, length-adjusted",
          of: (row) => row[adjusted]?.[source],
          format: asPercent,
        },
      );
    }
  }
  const known = columns.filter((column) => report.methods.some((row) => column.of(row)?.value != null));
  const requested = report.methods.some((row) => row.score !== null);
  // Reports of earlier versions did not keep it.
  const measured = report.methods.some((row) => row.length.value !== null);
  const longest = Math.max(
    0,
    ...report.costs.map(({ ledger }) => ledger.device_seconds + ledger.failed_device_seconds),
  );
  return (
    <Table.ScrollContainer
      minWidth="max-content"
      scrollAreaProps={{
        viewportProps: { tabIndex: 0, role: "group", "aria-label": "Entrants by every source" },
      }}
    >
      <Table aria-label="Entrants by every source" className="methods-table">
        <Table.Thead>
          <Table.Tr>
            <Table.Th className="methods-entrant">Entrant</Table.Th>
            {requested && <Table.Th ta="right">Requested score</Table.Th>}
            {known.map((column) => (
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
              <Table.Td className="methods-entrant">
                <Text size="sm" truncate title={row.entrant}>
                  {row.entrant}
                </Text>
                <Text size="xs" c="dimmed" truncate>
                  {describe(report, row)}
                </Text>
              </Table.Td>
              {requested && <Table.Td ta="right">{row.score === null ? "–" : shown(row.score)}</Table.Td>}
              {known.map((column) => (
                <Table.Td key={`${column.title} ${column.about}`} ta="right">
                  <Found of={column.of(row)} format={column.format} items={column.items?.(row)} />
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
  items: ItemsSearch | undefined;
}) {
  const figure = <Figure of={of?.value == null ? undefined : of} format={format} />;
  return of?.value != null && items ? <ItemsLink search={items}>{figure}</ItemsLink> : figure;
}

/** What it took to make it, next to what it is worth. */
function EntrantCost({ report, entrant, longest }: { report: Report; entrant: string; longest: number }) {
  const cost = report.costs.find((one) => one.entrant === entrant);
  if (!cost) return "–";
  return (
    <>
      {seconds(cost.ledger.device_seconds)}{" "}
      <Text span size="xs" c="dimmed">
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
