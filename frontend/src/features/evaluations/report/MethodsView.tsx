import { Table, Text } from "@mantine/core";
import { bestOf } from "../../../shared/report/bestOf";
import { shown } from "../../../shared/forms/condition";
import { PhaseBar } from "../../../shared/costs/PhaseBar";
import { seconds } from "../../../shared/format/format";
import { asPercent, Figure, plain, whole, type Estimate, type Report } from "./Figure";

interface Column {
  title: string;
  about: string;
  of: (row: Report["methods"][number]) => Estimate | undefined;
  /** The same over answers of like length. */
  atLikeLength?: (row: Report["methods"][number]) => Estimate | undefined;
  format: (value: number) => string;
}

/** Table 2 of the paper: every entrant by every source that assesses it. */
export function MethodsView({ report }: { report: Report }) {
  const columns: Column[] = [];
  const sources = (field: "human" | "jury" | "judge" | "reward") => [
    ...new Set(report.methods.flatMap((row) => Object.keys(row[field] ?? {}))),
  ];
  const kinds = [
    ["human", "human_win_rate", "human_length_matched", "rank score, people"],
    ["jury", "jury_win_rate", "jury_length_matched", "score, jury"],
    ["judge", "judge_win_rate", "judge_length_matched", "score, judge"],
    ["reward", "reward_win_rate", "reward_length_matched", "reward"],
  ] as const;
  for (const [mean, rate, matched, about] of kinds) {
    for (const source of sources(mean)) {
      columns.push({ title: source, about, of: (row) => row[mean]?.[source], format: plain(2) });
      if (report.methods.some((row) => row[rate]?.[source])) {
        columns.push({
          title: source,
          about: `win rate against ${report.baseline ?? "the baseline"}`,
          of: (row) => row[rate]?.[source],
          atLikeLength: (row) => row[matched]?.[source],
          format: asPercent,
        });
      }
    }
  }
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
            <Table.Th ta="right">Score asked</Table.Th>
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
            <Table.Th ta="right">
              Length
              <Text size="xs" c="dimmed" fw={400}>
                characters
              </Text>
            </Table.Th>
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
                  <Figure of={column.of(row)} format={column.format} />
                  <AtLikeLength of={column.atLikeLength?.(row)} all={column.of(row)} format={column.format} />
                </Table.Td>
              ))}
              {longest > 0 && (
                <Table.Td miw={110}>
                  <EntrantCost report={report} entrant={row.entrant} longest={longest} />
                </Table.Td>
              )}
              <Table.Td ta="right">
                <Figure of={row.length} format={whole} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** Nothing where it is over the same items as the figure of all. */
function AtLikeLength({
  of,
  all,
  format,
}: {
  of: Estimate | undefined;
  all: Estimate | undefined;
  format: (value: number) => string;
}) {
  if (!of || of.n === all?.n) return null;
  return (
    <Text size="xs" c="dimmed" component="div" mt={4}>
      at like length <Figure of={of} format={format} />
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
