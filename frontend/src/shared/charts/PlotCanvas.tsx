import { Text, useComputedColorScheme, useMantineTheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { count, short } from "../format/format";
import type { XAxis } from "./axis";
import { ChartLegend } from "./ChartLegend";
import type { Column, Shown, Table } from "./layout";
import type { Line } from "./line";
import { optionsOf, rangeOf, seenOf, seriesOf, wholeOf } from "./plot";
import { type Range, within } from "./ranges";
import { isChosen } from "./yRange";

/** The part of x that is zoomed to, and the axis that it is a part of. */
export interface Zoom {
  of: string;
  range: Range;
}

interface Properties {
  lines: readonly Line[];
  table: Table;
  columns: readonly Column[];
  x: XAxis;
  /** What the chart is of. */
  name: string;
  /** Whether the name is written along the axis. */
  named: boolean;
  /** In pixels; without one, as high as the place that it has. */
  height: number | undefined;
  marks: boolean;
  shown: Shown;
  sync: string | undefined;
  hidden: ReadonlySet<string>;
  onToggle: (label: string) => void;
  /** Outlives the plot: another one of the same chart begins where this one was. */
  zoomRef: React.RefObject<Zoom | undefined>;
  onZoomed: (zoomed: boolean) => void;
  /** The plot that is on the page. */
  plotRef: React.RefObject<uPlot | undefined>;
  onWhole: () => void;
}

/** A chart's canvas with its legend, and below it what of the values cannot be seen. */
export function PlotCanvas(properties: Properties) {
  const { lines, table, columns, x, name, named, marks, shown, sync, hidden, zoomRef, plotRef } = properties;
  const { ref: frame, width, height: place } = useElementSize();
  const fills = properties.height === undefined;
  const height = properties.height ?? Math.floor(place);
  const host = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const theme = useMantineTheme();
  const dark = useComputedColorScheme("light") === "dark";
  const [outside, setOutside] = useState(0);
  const latest = useRef({ lines, table, columns, hidden, x, width, height });
  const fits = width >= 50 && height >= 50;
  // With another shape, a plot has other columns or axes, and has to be made again.
  const shape = JSON.stringify([
    lines.map((line) => [line.label, line.color, !!line.band]),
    shown.smoothing > 0,
    shown.yRange ?? {},
    table.logX,
    table.logY,
  ]);

  useEffect(() => {
    latest.current = { lines, table, columns, hidden, x, width, height };
    const drawn = plotRef.current;
    if (!drawn || drawn.data.length !== table.data.length) return;
    drawn.setData(table.data, !zoomRef.current);
    if (zoomRef.current) drawn.setScale("x", zoomRef.current.range);
    write(legend.current, drawn, latest.current);
  }, [lines, table, columns, hidden, x, width, height, plotRef, zoomRef]);

  useEffect(() => {
    if (!host.current || !fits) return;
    const { lines, table, columns, hidden, x, width, height } = latest.current;
    const kept = zoomRef.current;
    const made = new uPlot(
      optionsOf({
        lines,
        columns,
        table,
        hidden,
        x,
        y: named ? name : undefined,
        marks,
        look: {
          text: dark ? theme.colors.dark[1] : theme.colors.gray[7],
          grid: dark ? theme.colors.dark[5] : theme.colors.gray[2],
        },
        size: { width, height },
        sync,
        yRange: shown.yRange,
        onRange: (drawn) => {
          const [range, whole] = [rangeOf(drawn), wholeOf(drawn)];
          if (!range || !whole) return;
          zoomRef.current = within(range, whole) ? { of: x.label, range } : undefined;
          properties.onZoomed(!!zoomRef.current);
        },
        onDrawn: (drawn) => setOutside(isChosen(shown.yRange) ? outsideOf(drawn, latest.current.columns) : 0),
        onCursor: (drawn) => write(legend.current, drawn, latest.current),
      }),
      table.data,
      host.current,
    );
    if (kept?.of === x.label && !(table.logX && kept.range.min <= 0)) made.setScale("x", kept.range);
    else zoomRef.current = undefined;
    plotRef.current = made;
    write(legend.current, made, latest.current);
    return () => {
      // The one that takes its place may be there already.
      if (plotRef.current === made) plotRef.current = undefined;
      made.destroy();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `shape` stands for what the plot takes of the lines
  }, [shape, fits, dark, theme, x, name, named, marks, sync]);

  useEffect(() => plotRef.current?.setSize({ width, height }), [width, height, plotRef]);

  useEffect(() => {
    const drawn = plotRef.current;
    drawn?.batch(() =>
      lines.forEach((line, at) => {
        const show = !hidden.has(line.label);
        for (const series of seriesOf(columns, at))
          if (drawn.series[series]?.show !== show) drawn.setSeries(series, { show });
      }),
    );
  }, [hidden, lines, columns, plotRef]);

  const last = lines.map((line) => `${line.label} ends at ${short(line.points.at(-1)?.y ?? NaN)}`).join("; ");
  return (
    <div className={fills ? "chart-plot-filling" : undefined}>
      <div ref={frame} className="chart-plot" style={{ minHeight: properties.height }}>
        <div
          ref={host}
          role="img"
          aria-label={`${name} over ${x.label}. ${last}`}
          style={{ minHeight: properties.height }}
          onDoubleClick={properties.onWhole}
        />
      </div>
      <div ref={legend} className="chart-legend-place">
        <ChartLegend
          x={x.label.charAt(0).toUpperCase() + x.label.slice(1)}
          lines={lines}
          hidden={hidden}
          onToggle={properties.onToggle}
        />
      </div>
      {table.leftOut > 0 && (
        <Text size="xs" c="dimmed" px={8}>
          {values(table.leftOut)} not above 0, where a logarithmic axis ends.
        </Text>
      )}
      {outside > 0 && (
        <Text size="xs" c="dimmed" px={8}>
          {values(outside)} outside the range of y.
        </Text>
      )}
    </div>
  );
}

const values = (number: number) => `${count(number)} ${number === 1 ? "value is" : "values are"}`;

/** The number of values above or below what is seen of y. */
function outsideOf(drawn: uPlot, columns: readonly Column[]): number {
  const y = rangeOf(drawn, "y");
  return y ? seenOf(drawn, columns).filter((value) => value < y.min || value > y.max).length : 0;
}

/** The values where the pointer is into the legend; without one, where the lines end. */
function write(
  legend: HTMLElement | null,
  drawn: uPlot,
  { lines, columns, x }: { lines: readonly Line[]; columns: readonly Column[]; x: XAxis },
): void {
  const places = [...(legend?.querySelectorAll("[data-value]") ?? [])];
  const { idx, idxs } = drawn.cursor as { idx?: number | null; idxs?: (number | null)[] };
  const under = idx == null ? null : drawn.data[0][idx];
  if (places[0]) places[0].textContent = under == null ? endOf(lines, x) : x.read(under);
  lines.forEach((line, at) => {
    const series = columns.findIndex((column) => column.line === at && column.part === "main") + 1;
    const index = idxs?.[series];
    const read = under == null ? line.points.at(-1)?.y : index == null ? null : drawn.data[series]?.[index];
    const place = places[at + 1];
    if (place) place.textContent = read == null ? "–" : short(read);
  });
}

/** Where all lines end; they need not end at one x. */
function endOf(lines: readonly Line[], x: XAxis): string {
  const [end, ...others] = new Set(lines.map((line) => line.points.at(-1)?.x));
  return end === undefined || others.length ? "last" : x.read(end);
}
