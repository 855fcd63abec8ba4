import { Box, Group, Stack, Text, Title } from "@mantine/core";
import { asPercent, Figure, type Report } from "../Figure";
import { ItemsLink } from "../ItemsLink";
import { mirrored } from "./pairs";

// Dark to light: the order reads without telling hues apart.
const SHADES = ["#0b7285", "#1098ad", "#3bc9db", "#99e9f2", "#ced4da", "#adb5bd", "#868e96", "#495057"];
const LIGHT = new Set(["#1098ad", "#3bc9db", "#99e9f2", "#ced4da", "#adb5bd", "#868e96"]);

/** Figure 6 of the paper: how often each entrant has each rank. */
export function RankShares({ shares }: { shares: Report["ranks"] }) {
  const sources = [...new Set(shares.map((row) => `${row.by} ${row.source}`))];
  return (
    <Stack gap="lg">
      {sources.map((source) => {
        const rows = shares.filter((row) => `${row.by} ${row.source}` === source);
        return (
          <div key={source}>
            <Title order={3} size="h6" mb={6}>
              {rows[0]!.source}{" "}
              <Text span c="dimmed" size="sm">
                {rows[0]!.by === "human" ? "people" : rows[0]!.by}
              </Text>
            </Title>
            <Text size="xs" c="dimmed" ta="right" visibleFrom="sm">
              mean rank, 1 is best
            </Text>
            <Stack gap={6}>
              {rows.map((row) => (
                <Group key={row.entrant} gap="sm" wrap="nowrap" align="center">
                  <Text size="sm" w={150} style={{ flexShrink: 0, overflowWrap: "anywhere" }}>
                    {row.entrant}
                  </Text>
                  <Bar row={row} />
                  <Box w={120} ta="right" style={{ flexShrink: 0 }} visibleFrom="sm">
                    <ItemsLink search={{ a: row.entrant, source: `${row.by}:${row.source}` }}>
                      <Figure of={row.mean_score && mirrored(row.mean_score, row.shares.length + 1)} />
                    </ItemsLink>
                  </Box>
                </Group>
              ))}
            </Stack>
            <Legend ranks={rows[0]!.shares.length} />
          </div>
        );
      })}
    </Stack>
  );
}

function Bar({ row }: { row: Report["ranks"][number] }) {
  const said = row.shares.map((share, at) => `rank ${at + 1}: ${asPercent(share)}`).join(", ");
  return (
    <Box
      role="img"
      aria-label={`${row.entrant}: ${said}; n = ${row.n}`}
      style={{ display: "flex", flex: 1, height: 26, borderRadius: 4, overflow: "hidden", minWidth: 80 }}
    >
      {row.shares.map((share, at) => (
        <Box
          key={at}
          title={`rank ${at + 1}: ${asPercent(share)}`}
          style={{
            width: `${100 * share}%`,
            background: SHADES[at],
            color: LIGHT.has(SHADES[at]!) ? "#000" : "#fff",
            fontSize: 11,
            lineHeight: "26px",
            textAlign: "center",
            overflow: "hidden",
          }}
        >
          {share >= 0.12 ? `${Math.round(100 * share)}%` : ""}
        </Box>
      ))}
    </Box>
  );
}

function Legend({ ranks }: { ranks: number }) {
  return (
    <Group gap="sm" mt={6}>
      {Array.from({ length: ranks }, (_, at) => (
        <Group key={at} gap={4}>
          <Box w={12} h={12} style={{ background: SHADES[at], borderRadius: 2 }} />
          <Text size="xs" c="dimmed">
            {at === 0 ? "1, best" : at + 1}
          </Text>
        </Group>
      ))}
    </Group>
  );
}
