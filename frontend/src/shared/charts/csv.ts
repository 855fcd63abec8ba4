import type { Line } from "./line";

/** Rows of x and a column for each line, with two more for each that has a band; raw values, as they were logged. */
export function csvOf(lines: readonly Line[], x: string): string {
  const columns = lines.flatMap(({ label, points, band }) => {
    const column = (name: string, value: (at: number) => number | null | undefined) => ({
      name,
      values: new Map(points.map((point, at) => [point.x, value(at)])),
    });
    return [
      column(label, (at) => points[at]!.y),
      ...(band
        ? (["low", "high"] as const).map((edge) => column(`${label}, ${edge}`, (at) => band[at]?.[edge]))
        : []),
    ];
  });
  const xs = [...new Set(lines.flatMap(({ points }) => points.map((point) => point.x)))].sort(
    (a, b) => a - b,
  );
  const rows = xs.map((at) => [at, ...columns.map(({ values }) => values.get(at) ?? "")].join(","));
  return [[x, ...columns.map(({ name }) => name)].map(quoted).join(","), ...rows].join("\n") + "\n";
}

/** A name as a cell. A spreadsheet would compute one that begins like a formula. */
function quoted(name: string): string {
  const text = /^[=+\-@\t\r\n]/.test(name) ? `'${name}` : name;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
