import { Group, Modal, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMemo, useRef, useState } from "react";
import type uPlot from "uplot";
import { numbers, type XAxis } from "./axis";
import { ChartTools, type Format, type Move } from "./ChartTools";
import { csvOf } from "./csv";
import { download, pngOf } from "./download";
import { columnsOf, PLAIN, type Shown, tableOf } from "./layout";
import type { Line } from "./line";
import { PlotCanvas, type Zoom } from "./PlotCanvas";
import { rangeOf, wholeOf } from "./plot";
import { panned, resized } from "./ranges";
import { svgOf } from "./svg";

const NONE: ReadonlySet<string> = new Set();
// How far a button moves, as a share of what is seen.
const STEP = 0.25;

/**
 * Lines over a shared x axis. Drawn on a canvas; the same numbers can be taken as CSV by those who cannot see it. The
 * part that is zoomed to, and the lines that are switched off, stay while points are added, when settings change, and
 * when the chart takes the whole window.
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
  const plot = useRef<uPlot>(undefined);
  const zoom = useRef<Zoom>(undefined);
  const [zoomed, setZoomed] = useState(false);
  const [hidden, setHidden] = useState(NONE);
  const [enlarged, setEnlarged] = useState(false);
  const x = useMemo(() => (typeof along === "string" ? numbers(along) : along), [along]);
  const table = useMemo(() => tableOf(lines, shown), [lines, shown]);
  const columns = useMemo(() => columnsOf(lines, shown.smoothing), [lines, shown.smoothing]);

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
    if (format === "csv") {
      const on = (whole ? await whole() : lines).filter(({ label }) => !hidden.has(label));
      return download(name, "text/csv", csvOf(on, x.label));
    }
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
  const toggle = (label: string) =>
    setHidden((before) =>
      before.has(label) ? new Set([...before].filter((one) => one !== label)) : new Set([...before, label]),
    );

  const toolbar = (onEnlarge?: () => void) => (
    <Group gap={2} wrap="nowrap">
      {tools}
      <ChartTools
        y={y}
        zoomed={zoomed}
        onMove={move}
        onEnlarge={onEnlarge}
        onExport={(format) =>
          void save(format).catch((error: Error) =>
            notifications.show({ title: "Export failed", message: error.message, color: "red" }),
          )
        }
      />
    </Group>
  );
  const drawn = (high: number | undefined) => (
    <PlotCanvas
      lines={lines}
      table={table}
      columns={columns}
      x={x}
      name={y}
      named={!title && high !== undefined}
      height={high}
      marks={marks}
      shown={shown}
      sync={sync}
      hidden={hidden}
      onToggle={toggle}
      zoomRef={zoom}
      onZoomed={setZoomed}
      plotRef={plot}
      onWhole={() => move("whole")}
    />
  );
  return (
    <div style={{ width: "100%" }}>
      <Group justify="space-between" wrap="nowrap" gap="xs" mb={2} align="flex-start">
        <Text component="div" fw={600} size="sm" lh="26px" style={{ overflowWrap: "anywhere" }}>
          {title}
        </Text>
        {toolbar(() => setEnlarged(true))}
      </Group>
      {/* One plot at a time: it moves into the window and back. */}
      {enlarged ? <div style={{ height: height + 24 }} /> : drawn(height)}
      <Modal
        opened={enlarged}
        onClose={() => setEnlarged(false)}
        title={title ?? y}
        fullScreen
        // A plot that is drawn while its window moves would not know where the pointer is.
        transitionProps={{ duration: 0 }}
        classNames={{ content: "chart-window", body: "chart-window-body" }}
      >
        <Group justify="flex-end" mb="xs">
          {toolbar()}
        </Group>
        {drawn(undefined)}
      </Modal>
    </div>
  );
}
