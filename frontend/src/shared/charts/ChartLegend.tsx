import { colorOf, dashOf } from "./colors";
import type { Line } from "./line";

/**
 * The lines, and their values where the pointer is, which the chart writes into `[data-value]`: x first, then one a
 * line. One of several lines is switched on and off by its name.
 */
export function ChartLegend({
  x,
  lines,
  hidden,
  onToggle,
}: {
  x: string;
  lines: readonly Line[];
  hidden: ReadonlySet<string>;
  onToggle: (label: string) => void;
}) {
  return (
    <div className="chart-legend">
      <span>
        {x} <span data-value />
      </span>
      {lines.map((line, at) => {
        const place = line.color ?? at;
        const entry = (
          <>
            <span
              className="chart-legend-mark"
              style={{ borderTop: `3px ${dashOf(place) ? "dashed" : "solid"} ${colorOf(place)}` }}
            />
            {line.label} <span data-value />
          </>
        );
        return lines.length > 1 ? (
          <button
            key={line.label}
            type="button"
            aria-pressed={!hidden.has(line.label)}
            onClick={() => onToggle(line.label)}
          >
            {entry}
          </button>
        ) : (
          <span key={line.label}>{entry}</span>
        );
      })}
    </div>
  );
}
