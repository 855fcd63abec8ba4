import { Box, Group, Text, Title, VisuallyHidden } from "@mantine/core";
import { useMemo } from "react";
import { count } from "../../format/format";
import type { Report } from "../Figure";

type Cell = Report["rewards"][number]["length_correlation"][number];

/** Blue to orange through white: told apart by those who do not see red from green. */
function colour(r: number): string {
  const strength = Math.round(100 * Math.min(1, Math.abs(r)));
  return `color-mix(in srgb, ${r < 0 ? "#1971c2" : "#e8590c"} ${strength}%, #f1f3f5)`;
}

/** Does the reward follow the length? One cell per prompt, one row per entrant; as in the paper's length study. */
export function LengthHeatMap({ cells }: { cells: Cell[] }) {
  const rows = useMemo(() => {
    const found = new Map<string, Cell[]>();
    for (const cell of cells) found.set(cell.entrant, [...(found.get(cell.entrant) ?? []), cell]);
    return [...found].map(([entrant, own]) => {
      const known = own.filter((cell) => cell.r !== null);
      const mean = known.length ? known.reduce((sum, cell) => sum + cell.r!, 0) / known.length : null;
      return { entrant, own: [...own].sort((a, b) => a.position - b.position), mean, known: known.length };
    });
  }, [cells]);
  return (
    <div>
      <Title order={4} size="h6">
        Reward and length
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        Pearson correlation of reward and length over the samples of each prompt. A single colour means that
        the reward model pays for length.
      </Text>
      {rows.map((row) => (
        <Group key={row.entrant} gap="sm" wrap="nowrap" mb={6} align="center">
          <Text size="sm" w={120} style={{ flexShrink: 0, overflowWrap: "anywhere" }}>
            {row.entrant}
            <Text size="xs" c="dimmed">
              mean {row.mean === null ? "–" : row.mean.toFixed(2).replace("-", "−")}, n = {count(row.known)}
            </Text>
          </Text>
          <Box
            style={{ display: "flex", flexWrap: "wrap", gap: 1, flex: 1 }}
            role="img"
            aria-label={`${row.entrant}: mean correlation ${row.mean?.toFixed(2) ?? "unknown"} over ${row.known} prompts`}
          >
            {row.own.map((cell) => (
              <Box
                key={cell.position}
                title={`prompt ${cell.position + 1}: ${cell.r === null ? "constant" : `r = ${cell.r.toFixed(2)}`}, ${cell.n} samples`}
                style={{
                  width: 14,
                  height: 14,
                  borderRadius: 2,
                  background: cell.r === null ? "transparent" : colour(cell.r),
                  border: cell.r === null ? "1px dashed var(--mantine-color-dimmed)" : undefined,
                }}
              />
            ))}
          </Box>
          <VisuallyHidden>
            {row.own
              .map((cell) => `prompt ${cell.position + 1}: ${cell.r?.toFixed(2) ?? "constant"}`)
              .join("; ")}
          </VisuallyHidden>
        </Group>
      ))}
      <Group gap={6}>
        <Text size="xs" c="dimmed">
          −1
        </Text>
        {[-1, -0.5, 0, 0.5, 1].map((r) => (
          <Box key={r} w={20} h={12} style={{ background: colour(r), borderRadius: 2 }} />
        ))}
        <Text size="xs" c="dimmed">
          1
        </Text>
      </Group>
    </div>
  );
}
