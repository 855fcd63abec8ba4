import uPlot from "uplot";
import { ticks } from "../format/format";
import type { XAxis } from "./axis";
import { colorOf, dashOf } from "./colors";
import type { Column, Table } from "./layout";
import type { Line } from "./line";
import { panned, type Range, zeroRange } from "./ranges";
import { PALE } from "./svg";
import { bounded, isChosen, withoutOutliers, type YRange } from "./yRange";

interface Look {
  text: string;
  grid: string;
}

interface Asked {
  lines: readonly Line[];
  columns: readonly Column[];
  table: Table;
  hidden: ReadonlySet<string>;
  x: XAxis;
  /** Along the axis of y; none where the name is above the chart. */
  y: string | undefined;
  marks: boolean;
  look: Look;
  size: { width: number; height: number };
  /** Charts with the same key share their crosshair. */
  sync: string | undefined;
  yRange: YRange | undefined;
  /** The part of x that is seen has changed. */
  onRange: (drawn: uPlot) => void;
  /** What is drawn has changed: data, or a part of either axis. */
  onDrawn: (drawn: uPlot) => void;
  onCursor: (drawn: uPlot) => void;
}

/** What a line's columns are called by uPlot: the whole of them is switched on and off together. */
export const seriesOf = (columns: readonly Column[], line: number) =>
  columns.flatMap((column, at) => (column.line === line ? [at + 1] : []));

/** Options of a plot whose data are those of `table`. A drag zooms, a drag with Shift moves, a double click resets. */
export function optionsOf(asked: Asked): uPlot.Options {
  const { lines, columns, table, hidden, x, y, marks, look } = asked;
  const axis = {
    stroke: look.text,
    grid: { stroke: look.grid, width: 1 },
    ticks: { stroke: look.grid, width: 1 },
    labelSize: 16,
  };
  const series = columns.map(({ line, part }): uPlot.Series => {
    const show = !hidden.has(lines[line]!.label);
    if (part === "low" || part === "high") return { show, width: 0, spanGaps: true, points: { show: false } };
    const place = lines[line]!.color ?? line;
    const pale = part === "raw";
    return {
      show,
      stroke: pale ? `${colorOf(place)}${alpha(PALE)}` : colorOf(place),
      width: 2,
      dash: pale ? undefined : dashOf(place),
      spanGaps: true,
      points: { show: marks && !pale, size: 7 },
    };
  });
  const bands = columns.flatMap(({ line, part }, at): uPlot.Band[] =>
    part === "high" ? [{ series: [at + 1, at + 2], fill: `${colorOf(lines[line]!.color ?? line)}2e` }] : [],
  );
  return {
    ...asked.size,
    scales: {
      x: { time: false, distr: table.logX ? 3 : 1 },
      y: { distr: table.logY ? 3 : 1, range: rangeOfY(asked) },
    },
    legend: { show: false },
    cursor: {
      y: false,
      move: withinPlot,
      // The nearest value that there is: several lines need not have the same x.
      hover: { skip: [null, undefined] },
      points: { size: (_, at) => (columns[at - 1]?.part === "main" ? 7 : 0) },
      bind: {
        mousedown: (drawn, _, start) => (event) => (event.shiftKey ? move(drawn, event) : start(event)),
      },
      ...(asked.sync && {
        sync: { key: asked.sync, scales: ["x", null], filters: { pub: moves, sub: moves } },
      }),
    },
    axes: [
      { ...axis, label: x.label, size: 34, values: marked(x.ticks), ...(x.steps && { incrs: x.steps }) },
      { ...axis, label: y, size: 54, values: marked(ticks) },
    ],
    series: [{}, ...series],
    bands,
    hooks: {
      setScale: [(drawn, scale) => scale === "x" && asked.onRange(drawn)],
      setCursor: [asked.onCursor],
      draw: [asked.onDrawn],
    },
  };
}

/** uPlot's own range of y, but where all values are 0 and where a person chose another. */
function rangeOfY({ columns, table, yRange }: Asked): uPlot.Range.Function {
  return (drawn, min, max) => {
    if (min === null || max === null) return [null, null];
    const kept = yRange?.outliers ? withoutOutliers(seenOf(drawn, columns), yRange.outliers) : undefined;
    const found = own(kept ?? { min, max }, table.logY);
    if (!isChosen(yRange)) return found;
    const taken = bounded({ min: found[0]!, max: found[1]! }, yRange, table.logY);
    return [taken.min, taken.max];
  };
}

const own = ({ min, max }: Range, log: boolean): uPlot.Range.MinMax =>
  log ? uPlot.rangeLog(min, max, 10, false) : (zeroRange(min, max) ?? uPlot.rangeNum(min, max, 0.1, true));

/** The values of the lines that are on, in the part of x that is seen. While y is ranged, x has no range yet. */
export function seenOf(drawn: uPlot, columns: readonly Column[]): number[] {
  const [first, last] = drawn.series[0]!.idxs ?? [0, -1];
  return columns.flatMap(({ part }, at) => {
    if (part !== "main" || !drawn.series[at + 1]?.show) return [];
    return [...drawn.data[at + 1]!.slice(first, last + 1)].filter((value) => value != null);
  });
}

/** A crosshair that another chart shares has no place here where this one is zoomed to another part. */
const withinPlot: uPlot.Cursor.MousePosRefiner = (drawn, left, top) =>
  left > drawn.over.clientWidth ? [-10, -10] : [left, top];

/** Where all of its points are. */
export function wholeOf(drawn: uPlot): Range | undefined {
  const xs = drawn.data[0];
  return xs.length ? { min: xs[0]!, max: xs.at(-1)! } : undefined;
}

/** What is seen of it. */
export function rangeOf(drawn: uPlot, scale = "x"): Range | undefined {
  const { min, max } = drawn.scales[scale]!;
  return min == null || max == null ? undefined : { min, max };
}

// Only the crosshair is shared; each chart keeps its own zoom.
const moves = (type: string) => type === "mousemove" || type === "mouseleave";

const alpha = (share: number) => Math.round(255 * share).toString(16);

/** A logarithmic axis leaves some of its marks without a number. */
const marked = (write: (values: number[]) => string[]) => (_: uPlot, values: (number | null)[]) => {
  const written = write(values.filter((value) => value !== null));
  let at = 0;
  return values.map((value) => (value === null ? "" : written[at++]!));
};

/** Until the button is let go. */
function move(drawn: uPlot, start: MouseEvent): null {
  const [from, whole] = [rangeOf(drawn), wholeOf(drawn)];
  if (!from || !whole) return null;
  start.preventDefault();
  const log = drawn.scales.x!.distr === 3;
  const follow = (event: MouseEvent) => {
    const share = (start.clientX - event.clientX) / drawn.over.clientWidth;
    drawn.setScale("x", panned(from, whole, share, log));
  };
  const stop = () => {
    document.removeEventListener("mousemove", follow);
    document.removeEventListener("mouseup", stop);
  };
  document.addEventListener("mousemove", follow);
  document.addEventListener("mouseup", stop);
  return null;
}
