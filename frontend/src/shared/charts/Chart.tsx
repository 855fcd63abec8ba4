import { useComputedColorScheme, useMantineTheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { short } from "../format/format";
import { colorOf } from "./colors";

export interface Line {
  label: string;
  /** x in ascending order. */
  points: { x: number; y: number | null }[];
  /** A band around the line, one pair a point. */
  band?: { low: number; high: number }[];
}

/** Lines over a shared x axis. Drawn on a canvas; the same numbers are in a table for those who cannot see it. */
export function Chart({
  lines,
  x,
  y,
  height = 220,
  marks = false,
  titled = false,
}: {
  lines: Line[];
  x: string;
  y: string;
  height?: number;
  marks?: boolean;
  /** The name of y is already above the chart. */
  titled?: boolean;
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
    // A band is two more columns that draw nothing but the space between them, and no entry in the legend.
    const bands: uPlot.Band[] = [];
    // The two edges of a line's band, by the place of the line.
    const edgesOf = new Map<number, number[]>();
    const edges: uPlot.Series[] = [];
    lines.forEach((line, at) => {
      if (!line.band) return;
      for (const side of ["high", "low"] as const) {
        const column: (number | null)[] = new Array<number | null>(xs.length).fill(null);
        line.points.forEach((point, of) => (column[place.get(point.x)!] = line.band![of]?.[side] ?? null));
        columns.push(column);
        edges.push({ class: "band-edge", width: 0, spanGaps: true, points: { show: false } });
      }
      const high = lines.length + edges.length - 1;
      edgesOf.set(at + 1, [high, high + 1]);
      bands.push({ series: [high, high + 1], fill: `${colorOf(at)}2e` });
    });
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const plot = new uPlot(
      {
        width,
        height,
        scales: { x: { time: false } },
        legend: { show: true },
        cursor: { y: false },
        axes: [
          { ...axis, label: x, labelSize: 16, size: 34, values: (_, ticks) => ticks.map(short) },
          {
            ...axis,
            label: titled ? undefined : y,
            labelSize: 16,
            size: 54,
            values: (_, ticks) => ticks.map(short),
          },
        ],
        series: [
          { label: x, value: (_: uPlot, value: number | null) => (value === null ? "last" : short(value)) },
          ...lines.map((line, at) => ({
            label: line.label,
            stroke: colorOf(at),
            width: 2,
            spanGaps: true,
            points: { show: marks, size: 7 },
            // Where the pointer is; without one, where the line ends.
            value: (_: uPlot, value: number | null, __: number, index: number | null) => {
              const read = index === null ? line.points.at(-1)?.y : value;
              return read === null || read === undefined ? "–" : short(read);
            },
          })),
          ...edges,
        ],
        bands,
        hooks: {
          // A line that is switched off in the legend takes its band with it.
          setSeries: [
            (drawn, at, { show }) => {
              if (at === null || show === undefined) return;
              for (const edge of edgesOf.get(at) ?? []) drawn.setSeries(edge, { show });
            },
          ],
        },
      },
      [xs, ...columns] as uPlot.AlignedData,
      host.current,
    );
    return () => plot.destroy();
  }, [lines, width, height, dark, theme, x, y, marks, titled]);

  const last = lines.map((line) => `${line.label} ends at ${short(line.points.at(-1)?.y ?? NaN)}`).join("; ");
  return (
    <div ref={ref} style={{ minHeight: height, width: "100%" }}>
      <div ref={host} role="img" aria-label={`${y} over ${x}. ${last}`} />
    </div>
  );
}
