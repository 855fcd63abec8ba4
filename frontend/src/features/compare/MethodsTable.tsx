import { Table, Text } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { percent, seconds, signed } from "../../shared/format/format";
import { bestOf } from "../../shared/report/bestOf";
import { intervalOf } from "../../shared/report/intervalOf";
import { winsVs } from "../../shared/report/winsVs";
import { shown } from "../../shared/forms/condition";
import { Link, useProject } from "../../shared/links";

type Row = Schemas["MethodRow"];

export interface MethodGroup {
  /** Which pipeline the rows are from, where there are several. */
  title?: string;
  rows: Row[];
  /** The method that the win rates are against. */
  baseline?: string | null;
}

/** The methods of one or several reports on one scale. */
export function MethodsTable({ groups }: { groups: MethodGroup[] }) {
  const project = useProject();
  const rows = groups.flatMap((group) => group.rows);
  const low = Math.min(0, ...rows.map((row) => row.reward_low ?? row.reward_mean));
  const high = Math.max(0, ...rows.map((row) => row.reward_high ?? row.reward_mean));
  const quality = rows.some((row) => row.quality_mean !== null && row.quality_mean !== undefined);
  const judged = rows.some((row) => row.judge_win_rate_vs_baseline != null);
  return (
    <Table.ScrollContainer minWidth={880}>
      <Table aria-label="Methods with reward, interval, length, win rate and cost">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Method</Table.Th>
            <Table.Th ta="right">Score</Table.Th>
            <Table.Th ta="right">Reward</Table.Th>
            <Table.Th w={216}>95% interval</Table.Th>
            <Table.Th ta="right">Length (tokens)</Table.Th>
            <Table.Th ta="right" style={{ whiteSpace: "nowrap" }}>
              Distinct-2
            </Table.Th>
            <Table.Th ta="right">{winsVs(groups.map((group) => group.baseline))}</Table.Th>
            <Table.Th ta="right">Independent</Table.Th>
            {judged && <Table.Th ta="right">Judge</Table.Th>}
            {quality && <Table.Th ta="right">Known quality</Table.Th>}
            <Table.Th ta="right">Device time, own run</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {groups.map((group, at) => [
            group.title && (
              <Table.Tr key={`title-${at}`}>
                <Table.Th colSpan={9 + Number(quality) + Number(judged)} scope="rowgroup">
                  {group.title}
                </Table.Th>
              </Table.Tr>
            ),
            ...group.rows.map((row, place) => (
              <Table.Tr key={`${at}-${place}`}>
                <Table.Td>
                  <Text size="sm" fw={550}>
                    {row.method}
                  </Text>
                  <Link size="xs" to="/p/$project/models/$model" params={{ project, model: row.entrant }}>
                    {row.entrant}
                  </Link>
                  {row.guidance !== undefined && row.guidance !== 1 && (
                    <Text size="xs" c="dimmed">
                      guidance {row.guidance}
                    </Text>
                  )}
                  {row.best_of && (
                    <Text size="xs" c="dimmed">
                      {bestOf(row)}
                    </Text>
                  )}
                </Table.Td>
                <Table.Td ta="right">{row.score === null ? "–" : shown(row.score)}</Table.Td>
                <Table.Td ta="right" fw={600}>
                  {signed(row.reward_mean)}
                </Table.Td>
                <Table.Td>
                  <Interval row={row} low={low} high={high} />
                  <Text size="xs" c="dimmed">
                    {intervalOf(row)}
                  </Text>
                </Table.Td>
                <Table.Td ta="right">{row.length_mean.toFixed(1)}</Table.Td>
                <Table.Td ta="right">{row.distinct_2.toFixed(2)}</Table.Td>
                <Table.Td ta="right">{percent(row.win_rate_vs_baseline)}</Table.Td>
                <Table.Td ta="right">{percent(row.independent_win_rate_vs_baseline)}</Table.Td>
                {judged && <Table.Td ta="right">{percent(row.judge_win_rate_vs_baseline)}</Table.Td>}
                {quality && <Table.Td ta="right">{row.quality_mean?.toFixed(2) ?? "–"}</Table.Td>}
                <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                  <DeviceTime row={row} />
                </Table.Td>
              </Table.Tr>
            )),
          ])}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** The device time of its own run, and below it of all runs that it needs. */
function DeviceTime({ row }: { row: Row }) {
  const { own_device_seconds: own, total_device_seconds: total } = row;
  return (
    <>
      {own == null ? "unknown" : seconds(own)}
      <Text size="xs" c="dimmed">
        {total == null ? "all: unknown" : `all: ${seconds(total)}`}
      </Text>
    </>
  );
}

function Interval({ row, low, high }: { row: Row; low: number; high: number }) {
  const width = 200;
  const at = (value: number) => 6 + ((value - low) / (high - low || 1)) * (width - 12);
  return (
    <svg width={width} height={18} display="block" role="img" aria-label={intervalOf(row)}>
      <title>{`${signed(row.reward_mean)}, ${intervalOf(row)}, n = ${row.n}`}</title>
      <line x1={at(0)} x2={at(0)} y1={1} y2={17} stroke="var(--mantine-color-default-border)" />
      {row.reward_low !== null && row.reward_high !== null && (
        <line
          x1={at(row.reward_low)}
          x2={Math.max(at(row.reward_high), at(row.reward_low) + 1)}
          y1={9}
          y2={9}
          stroke="var(--mantine-primary-color-filled)"
          strokeWidth={3}
          strokeLinecap="round"
        />
      )}
      <circle cx={at(row.reward_mean)} cy={9} r={4.5} fill="var(--mantine-primary-color-filled)" />
    </svg>
  );
}
