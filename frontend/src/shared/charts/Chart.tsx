import { Group, Text, useComputedColorScheme, useMantineTheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { count, short } from "../format/format";
import { numbers, type XAxis } from "./axis";
import { ChartLegend } from "./ChartLegend";
import { ChartTools, type Format, type Move } from "./ChartTools";
import { csvOf } from "./csv";
import { download, pngOf } from "./download";
import { columnsOf, PLAIN, type Shown, tableOf } from "./layout";
import type { Line } from "./line";
import { optionsOf, rangeOf, seriesOf, wholeOf } from "./plot";
import { panned, type Range, resized, within } from "./ranges";
import { svgOf } from "./svg";

const NONE: ReadonlySet<string> = new Set();
// How far a button moves, as a share of what is seen.
const STEP = 0.25;

/**
 * Lines over a shared x axis. Drawn on a canvas; the same numbers can be taken as CSV by those who cannot see it. The
 * part that is zoomed to, and the lines that are switched off, stay while points are added and when settings change.
 */
export function Chart({
  lines,
  x: along,
  y,
  height = 220,
  marks = false,
  title,
  tools,
  shown = PLAIN,
  sync,
  whole,
}: {
  lines: Line[];
  x: string | XAxis;
  y: string;
  height?: number;
  marks?: boolean;
  /** Above the chart; y is then not written along its axis. */
  title?: React.ReactNode;
  /** Further buttons, before those of every chart. */
  tools?: React.ReactNode;
  shown?: Shown;
  /** Charts with the same key share their crosshair. */
  sync?: string;
  /** The lines with more of their points than are drawn, for an export. */
  whole?: () => Promise<Line[]>;
}) {
  const { ref, width } = useElementSize();
  const host = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const theme = useMantineTheme();
  const dark = useComputedColorScheme("light") === "dark";
  const plot = useRef<uPlot>(undefined);
  const zoom = useRef<{ of: string; range: Range }>(undefined);
  const [zoomed, setZoomed] = useState(false);
  const [hidden, setHidden] = useState(NONE);
  const x = useMemo(() => (typeof along === "string" ? numbers(along) : along), [along]);
  const table = useMemo(() => tableOf(lines, shown), [lines, shown]);
  const columns = useMemo(() => columnsOf(lines, shown.smoothing), [lines, shown.smoothing]);
  const latest = useRef({ lines, table, columns, hidden, x, width, height });
  const fits = width >= 50;
  // With another shape, a plot has other columns or axes, and has to be made again.
  const shape = JSON.stringify([
    lines.map((line) => [line.label, line.color, !!line.band]),
    shown.smoothing > 0,
    table.logX,
    table.logY,
  ]);

  useEffect(() => {
    latest.current = { lines, table, columns, hidden, x, width, height };
    const drawn = plot.current;
    if (!drawn || drawn.data.length !== table.data.length) return;
    drawn.setData(table.data, !zoom.current);
    if (zoom.current) drawn.setScale("x", zoom.current.range);
    write(legend.current, drawn, latest.current);
  }, [lines, table, columns, hidden, x, width, height]);

  useEffect(() => {
    if (!host.current || !fits) return;
    const { lines, table, columns, hidden, x, width, height } = latest.current;
    const kept = zoom.current;
    const made = new uPlot(
      optionsOf({
        lines,
        columns,
        table,
        hidden,
        x,
        y: title ? undefined : y,
        marks,
        look: {
          text: dark ? theme.colors.dark[1] : theme.colors.gray[7],
          grid: dark ? theme.colors.dark[5] : theme.colors.gray[2],
        },
        size: { width, height },
        sync,
        onRange: (drawn) => {
          const [range, whole] = [rangeOf(drawn), wholeOf(drawn)];
          if (!range || !whole) return;
          zoom.current = within(range, whole) ? { of: x.label, range } : undefined;
          setZoomed(!!zoom.current);
        },
        onCursor: (drawn) => write(legend.current, drawn, latest.current),
      }),
      table.data,
      host.current,
    );
    if (kept?.of === x.label && !(table.logX && kept.range.min <= 0)) made.setScale("x", kept.range);
    else zoom.current = undefined;
    plot.current = made;
    write(legend.current, made, latest.current);
    return () => {
      plot.current = undefined;
      made.destroy();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `shape` stands for what the plot takes of the lines
  }, [shape, fits, dark, theme, x, y, marks, !title, sync]);

  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);

  useEffect(() => {
    const drawn = plot.current;
    drawn?.batch(() =>
      lines.forEach((line, at) => {
        const show = !hidden.has(line.label);
        for (const series of seriesOf(columns, at))
          if (drawn.series[series]?.show !== show) drawn.setSeries(series, { show });
      }),
    );
  }, [hidden, lines, columns]);

  const move = (how: Move) => {
    const drawn = plot.current;
    const [range, all] = drawn ? [rangeOf(drawn), wholeOf(drawn)] : [];
    if (!drawn || !range || !all) return;
    const log = table.logX;
    if (how === "whole") drawn.setScale("x", all);
    else if (how === "left" || how === "right")
      drawn.setScale("x", panned(range, all, how === "left" ? -STEP : STEP, log));
    else drawn.setScale("x", resized(range, all, how === "in" ? 0.5 : 2, log));
  };
  const save = async (format: Format) => {
    const name = `${y} over ${x.label}.${format}`;
    if (format === "csv") return download(name, "text/csv", csvOf(whole ? await whole() : lines, x.label));
    const [across, up] = plot.current ? [rangeOf(plot.current), rangeOf(plot.current, "y")] : [];
    if (!across || !up) return;
    const ranges = { x: across, y: up };
    const svg = svgOf({
      title: y,
      x,
      lines,
      hidden: (line) => hidden.has(lines[line]!.label),
      table,
      shown,
      ranges,
    });
    download(
      name,
      format === "svg" ? "image/svg+xml" : "image/png",
      format === "svg" ? svg : await pngOf(svg),
    );
  };

  const last = lines.map((line) => `${line.label} ends at ${short(line.points.at(-1)?.y ?? NaN)}`).join("; ");
  return (
    <div ref={ref} style={{ width: "100%" }}>
      <Group justify="space-between" wrap="nowrap" gap="xs" mb={2} align="flex-start">
        <Text component="div" fw={600} size="sm" lh="26px" style={{ overflowWrap: "anywhere" }}>
          {title}
        </Text>
        <Group gap={2} wrap="nowrap">
          {tools}
          <ChartTools
            y={y}
            zoomed={zoomed}
            onMove={move}
            onExport={(format) =>
              void save(format).catch((error: Error) =>
                notifications.show({ title: "Export failed", message: error.message, color: "red" }),
              )
            }
          />
        </Group>
      </Group>
      <div
        ref={host}
        role="img"
        aria-label={`${y} over ${x.label}. ${last}`}
        style={{ minHeight: height }}
        onDoubleClick={() => move("whole")}
      />
      <div ref={legend}>
        <ChartLegend
          x={x.label.charAt(0).toUpperCase() + x.label.slice(1)}
          lines={lines}
          hidden={hidden}
          onToggle={(label) =>
            setHidden((before) =>
              before.has(label)
                ? new Set([...before].filter((one) => one !== label))
                : new Set([...before, label]),
            )
          }
        />
      </div>
      {table.leftOut > 0 && (
        <Text size="xs" c="dimmed" px={8}>
          {count(table.leftOut)} {table.leftOut === 1 ? "value is" : "values are"} not above 0, where a
          logarithmic axis ends.
        </Text>
      )}
    </div>
  );
}

/** The values where the pointer is into the legend; without one, where the lines end. */
function write(
  legend: HTMLElement | null,
  drawn: uPlot,
  { lines, columns, x }: { lines: readonly Line[]; columns: ReturnType<typeof columnsOf>; x: XAxis },
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
