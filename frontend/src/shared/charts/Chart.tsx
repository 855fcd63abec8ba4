import { Button, useComputedColorScheme, useMantineTheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { short, ticks } from "../format/format";
import { colorOf } from "./colors";

export interface Line {
  label: string;
  /** x in ascending order. */
  points: { x: number; y: number | null }[];
  /** A band around the line, one pair a point. */
  band?: { low: number; high: number }[];
}

/**
 * Lines over a shared x axis. Drawn on a canvas; the same numbers are in a table for those who cannot see it. The part
 * that a drag zoomed to, and the lines that are switched off in the legend, stay while points are added.
 */
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
  const plot = useRef<uPlot>(undefined);
  const zoom = useRef<{ of: string; min: number; max: number }>(undefined);
  const [zoomed, setZoomed] = useState(false);
  const table = useMemo(() => tableOf(lines), [lines]);
  const latest = useRef({ lines, table });
  useEffect(() => {
    latest.current = { lines, table };
    const drawn = plot.current;
    if (!drawn || drawn.data.length !== table.length) return;
    // Points were added. The same lines in another order would have another `shape`.
    drawn.setData(table, !zoom.current);
    if (zoom.current) drawn.setScale("x", zoom.current);
  }, [lines, table]);
  const shape = JSON.stringify(lines.map((line) => [line.label, !!line.band]));

  useEffect(() => {
    if (!host.current || width < 50) return;
    const { lines } = latest.current;
    const of = `${shape} ${x} ${y}`;
    const kept = zoom.current?.of === of ? zoom.current : undefined;
    const text = dark ? theme.colors.dark[1] : theme.colors.gray[7];
    const grid = dark ? theme.colors.dark[5] : theme.colors.gray[2];
    // A band is two more columns that draw nothing but the space between them, and no entry in the legend.
    const bands: uPlot.Band[] = [];
    // The two edges of a line's band, by the place of the line.
    const edgesOf = new Map<number, number[]>();
    const edges: uPlot.Series[] = [];
    lines.forEach((line, at) => {
      if (!line.band) return;
      for (let side = 0; side < 2; side += 1)
        edges.push({ class: "band-edge", width: 0, spanGaps: true, points: { show: false } });
      const high = lines.length + edges.length - 1;
      edgesOf.set(at + 1, [high, high + 1]);
      bands.push({ series: [high, high + 1], fill: `${colorOf(at)}2e` });
    });
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const made = new uPlot(
      {
        width,
        height,
        scales: { x: { time: false } },
        legend: { show: true },
        cursor: { y: false },
        axes: [
          { ...axis, label: x, labelSize: 16, size: 34, values: (_, values) => ticks(values) },
          {
            ...axis,
            label: titled ? undefined : y,
            labelSize: 16,
            size: 54,
            values: (_, values) => ticks(values),
          },
        ],
        series: [
          {
            label: x.length > 1 ? x.charAt(0).toUpperCase() + x.slice(1) : x,
            value: (_: uPlot, value: number | null) =>
              value === null ? endOf(latest.current.lines) : short(value),
          },
          ...lines.map((line, at) => ({
            label: line.label,
            stroke: colorOf(at),
            width: 2,
            spanGaps: true,
            points: { show: marks, size: 7 },
            // Where the pointer is; without one, where the line ends.
            value: (_: uPlot, value: number | null, __: number, index: number | null) => {
              const read = index === null ? latest.current.lines[at]?.points.at(-1)?.y : value;
              return read === null || read === undefined ? "–" : short(read);
            },
          })),
          ...edges,
        ],
        bands,
        hooks: {
          setScale: [
            (drawn, scale) => {
              const { min, max } = drawn.scales.x!;
              const xs = drawn.data[0];
              if (scale !== "x" || min == null || max == null || !xs.length) return;
              zoom.current = min > xs[0]! || max < xs.at(-1)! ? { of, min, max } : undefined;
              setZoomed(!!zoom.current);
            },
          ],
          // A line that is switched off in the legend takes its band with it.
          setSeries: [
            (drawn, at, { show }) => {
              if (at === null || show === undefined) return;
              for (const edge of edgesOf.get(at) ?? []) drawn.setSeries(edge, { show });
            },
          ],
        },
      },
      latest.current.table,
      host.current,
    );
    if (kept) made.setScale("x", kept);
    plot.current = made;
    return () => {
      plot.current = undefined;
      made.destroy();
    };
  }, [shape, width, height, dark, theme, x, y, marks, titled]);

  const last = lines.map((line) => `${line.label} ends at ${short(line.points.at(-1)?.y ?? NaN)}`).join("; ");
  return (
    <div ref={ref} style={{ minHeight: height, width: "100%", position: "relative" }}>
      {zoomed && (
        <Button
          size="compact-xs"
          variant="default"
          style={{ position: "absolute", top: 0, right: 0, zIndex: 1 }}
          onClick={() => {
            const xs = plot.current?.data[0];
            if (xs?.length) plot.current!.setScale("x", { min: xs[0]!, max: xs.at(-1)! });
          }}
        >
          Whole range
        </Button>
      )}
      <div ref={host} role="img" aria-label={`${y} over ${x}. ${last}`} />
    </div>
  );
}

/** Where all lines end; they need not end at one x. */
function endOf(lines: readonly Line[]): string {
  const [end, ...others] = new Set(lines.map((line) => line.points.at(-1)?.x));
  return end === undefined || others.length ? "last" : short(end);
}

/** One column for x, one a line, then two a band: nothing is drawn of these but the space between them. */
function tableOf(lines: readonly Line[]): uPlot.AlignedData {
  const xs = [...new Set(lines.flatMap((line) => line.points.map((p) => p.x)))].sort((a, b) => a - b);
  const place = new Map(xs.map((value, at) => [value, at]));
  const column = (line: Line, value: (at: number) => number | null) => {
    const made = new Array<number | null>(xs.length).fill(null);
    line.points.forEach((point, at) => (made[place.get(point.x)!] = value(at)));
    return made;
  };
  return [
    xs,
    ...lines.map((line) => column(line, (at) => line.points[at]!.y)),
    ...lines.flatMap((line) =>
      line.band
        ? (["high", "low"] as const).map((side) => column(line, (at) => line.band![at]?.[side] ?? null))
        : [],
    ),
  ];
}
