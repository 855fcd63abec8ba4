import { ticks } from "../format/format";
import type { XAxis } from "./axis";
import { colorOf, dashOf } from "./colors";
import { columnsOf, type Shown, type Table } from "./layout";
import type { Line } from "./line";
import { marksOf } from "./marks";
import type { Range } from "./ranges";

/** What a picture of a chart shows. */
export interface Drawn {
  title: string;
  x: XAxis;
  lines: readonly Line[];
  /** By the place of a line. */
  hidden: (line: number) => boolean;
  table: Table;
  shown: Shown;
  ranges: { x: Range; y: Range };
}

const WIDTH = 800;
const TOP = 44;
const PLOT = { left: 72, right: 784, top: TOP, bottom: TOP + 340 };
const ROW = 20;
const LETTER = 7;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";

/** A chart as SVG on white, in the range that is on the screen. */
export function svgOf({ title, x, lines, hidden, table, shown, ranges }: Drawn): string {
  const across = scale(ranges.x, PLOT.left, PLOT.right, table.logX);
  const up = scale(ranges.y, PLOT.bottom, PLOT.top, table.logY);
  const xMarks = marksOf(ranges.x, 8, { log: table.logX, steps: x.steps });
  const yMarks = marksOf(ranges.y, 6, { log: table.logY });
  const grid = [
    ...xMarks.map((mark) => rule(across(mark), PLOT.top, across(mark), PLOT.bottom)),
    ...yMarks.map((mark) => rule(PLOT.left, up(mark), PLOT.right, up(mark))),
  ];
  const words = [
    text(16, 26, title, 'font-size="16" font-weight="600"'),
    ...x.ticks(xMarks).map((mark, at) => text(across(xMarks[at]!), PLOT.bottom + 18, mark, MIDDLE)),
    ...ticks(yMarks).map((mark, at) => text(PLOT.left - 8, up(yMarks[at]!) + 4, mark, 'text-anchor="end"')),
    text((PLOT.left + PLOT.right) / 2, PLOT.bottom + 38, x.label, MIDDLE),
  ];
  const [xs, ...values] = table.data;
  const columns = columnsOf(lines, shown.smoothing);
  const curves = columns.map(({ line, part }, at) => {
    if (hidden(line) || part === "low") return "";
    const color = colorOf(lines[line]!.color ?? line);
    const places = placesOf(xs, values[at]!, across, up);
    if (part === "high") {
      const edge = placesOf(xs, values[at + 1]!, across, up).toReversed();
      return `<polygon points="${[...places, ...edge].join(" ")}" fill="${color}" fill-opacity="0.18"/>`;
    }
    const dash = dashOf(lines[line]!.color ?? line);
    const look = `stroke="${color}" stroke-width="2" stroke-opacity="${part === "raw" ? PALE : 1}"`;
    const dashes = dash ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    return `<polyline points="${places.join(" ")}" fill="none" ${look}${dashes} stroke-linejoin="round"/>`;
  });
  const { entries, height } = legend(
    lines.filter((_, at) => !hidden(at)),
    lines,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`,
    ` font-family="${FONT}" font-size="12" fill="#343a40">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<clipPath id="plot"><rect x="${PLOT.left}" y="${PLOT.top}" width="${PLOT.right - PLOT.left}" `,
    `height="${PLOT.bottom - PLOT.top}"/></clipPath>`,
    `<g stroke="#e9ecef">${grid.join("")}</g>`,
    `<g clip-path="url(#plot)">${curves.join("")}</g>`,
    ...words,
    ...entries,
    "</svg>",
  ].join("");
}

/** How much of its colour a raw line behind a smoothed one has. */
export const PALE = 0.28;

const MIDDLE = 'text-anchor="middle"';

function scale({ min, max }: Range, from: number, to: number, log: boolean) {
  const onto = (value: number) => (log ? Math.log10(value) : value);
  const length = onto(max) - onto(min) || 1;
  return (value: number) => round(from + ((onto(value) - onto(min)) / length) * (to - from));
}

function placesOf(
  xs: readonly number[],
  values: readonly (number | null)[],
  across: (value: number) => number,
  up: (value: number) => number,
): string[] {
  return xs.flatMap((x, at) => (values[at] == null ? [] : [`${across(x)},${up(values[at])}`]));
}

/** Below the axis, in as many rows as it takes. */
function legend(shown: readonly Line[], lines: readonly Line[]): { entries: string[]; height: number } {
  let [x, y] = [PLOT.left, PLOT.bottom + 64];
  const entries = shown.map((line) => {
    const width = 34 + LETTER * line.label.length;
    if (x > PLOT.left && x + width > PLOT.right) [x, y] = [PLOT.left, y + ROW];
    const place = line.color ?? lines.indexOf(line);
    const dash = dashOf(place);
    const look = `stroke="${colorOf(place)}" stroke-width="3"${dash ? ` stroke-dasharray="${dash.join(" ")}"` : ""}`;
    const entry = `<path d="M${x},${y - 4}h16" ${look}/>${text(x + 22, y, line.label)}`;
    x += width;
    return entry;
  });
  return { entries, height: y + 16 };
}

const round = (value: number) => Math.round(value * 100) / 100;
const rule = (x: number, y: number, toX: number, toY: number) => `<path d="M${x},${y}L${toX},${toY}"/>`;
const text = (x: number, y: number, words: string, more = "") =>
  `<text x="${x}" y="${y}" ${more}>${escaped(words)}</text>`;
const escaped = (words: string) =>
  words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
