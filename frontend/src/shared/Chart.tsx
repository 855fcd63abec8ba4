import { useComputedColorScheme, useMantineTheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { short } from "./format";

export interface Line {
  label: string;
  /** x in ascending order. */
  points: { x: number; y: number | null }[];
  /** A band around the line, one pair a point. */
  band?: { low: number; high: number }[];
}

const COLORS = ["#1098ad", "#f08c00", "#7048e8", "#e03131", "#2f9e44", "#c2255c", "#1971c2", "#868e96"];

/** Lines over a shared x axis. Drawn on a canvas; the same numbers stand in a table for those who cannot see it. */
export function Chart({
  lines,
  x,
  y,
  height = 220,
  marks = false,
}: {
  lines: Line[];
  x: string;
  y: string;
  height?: number;
  marks?: boolean;
}) {
  const { ref, width } = useElementSize();
  const host = useRef<HTMLDivElement>(null);
  const theme = useMantineTheme();
  const dark = useComputedColorScheme("light") === "dark";

  useEffect(() => {
    if (!host.current || width < 50) return;
    const text = dark ? theme.colors.dark[1] : theme.colors.gray[7];
    const grid = dark ? theme.colors.dark[5] : theme.colors.gray[2];
    const xs = [...new Set(lines.flatMap((line) => line.points.map((p) => p.x)))].sort((a, b) => a - b);
    const place = new Map(xs.map((value, at) => [value, at]));
    const columns = lines.map((line) => {
      const column: (number | null)[] = new Array<number | null>(xs.length).fill(null);
      for (const point of line.points) column[place.get(point.x)!] = point.y;
      return column;
    });
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const plot = new uPlot(
      {
        width,
        height,
        scales: { x: { time: false } },
        legend: { show: lines.length > 1 },
        cursor: { y: false },
        axes: [
          { ...axis, label: x, labelSize: 16, size: 34, values: (_, ticks) => ticks.map(short) },
          { ...axis, label: y, labelSize: 16, size: 54, values: (_, ticks) => ticks.map(short) },
        ],
        series: [
          { label: x },
          ...lines.map((line, at) => ({
            label: line.label,
            stroke: COLORS[at % COLORS.length],
            width: 2,
            spanGaps: true,
            points: { show: marks, size: 7 },
            value: (_: uPlot, value: number | null) => (value === null ? "–" : short(value)),
          })),
        ],
      },
      [xs, ...columns] as uPlot.AlignedData,
      host.current,
    );
    return () => plot.destroy();
  }, [lines, width, height, dark, theme, x, y, marks]);

  const last = lines.map((line) => `${line.label} ends at ${short(line.points.at(-1)?.y ?? NaN)}`).join("; ");
  return (
    <div ref={ref} style={{ minHeight: height, width: "100%" }}>
      <div ref={host} role="img" aria-label={`${y} over ${x}. ${last}`} />
    </div>
  );
}
