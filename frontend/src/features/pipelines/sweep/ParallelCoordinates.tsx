import { useElementSize } from "@mantine/hooks";
import { useMemo } from "react";
import type { Schemas } from "../../../api/client";
import { short } from "../../../shared/format/format";
import { axisOf, written } from "./axes";

type Sweep = Schemas["SweepReport"];
type Variant = Schemas["VariantRow"];

const HEIGHT = 300;
const TOP = 40;
const BOTTOM = 16;
const SIDE = 56;
/** Below this distance the labels of an axis run into the next one; the chart is scrolled instead. */
const NARROWEST = 112;
const LONGEST = 16;

/** One line a variant, through its settings to its figure. The table has the same numbers in words. */
export function ParallelCoordinates({
  sweep,
  shown,
  onShow,
}: {
  sweep: Sweep;
  /** The variant that is looked at. */
  shown: number | null;
  onShow: (variant: number | null) => void;
}) {
  const { ref, width } = useElementSize();
  const axes = useMemo(() => {
    const settings = sweep.fields.map((field) =>
      axisOf(
        field,
        sweep.variants.map((variant) => variant.values[field]),
        short,
      ),
    );
    const figures = sweep.variants.map((variant) => variant.figure?.value);
    return [...settings, axisOf(sweep.figure, figures, short)];
  }, [sweep]);
  const inner = Math.max(width, 2 * SIDE + (axes.length - 1) * NARROWEST);
  const x = (at: number) => SIDE + (at * (inner - 2 * SIDE)) / (axes.length - 1);
  const y = (share: number) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  // What matters most is drawn last, on top.
  const lines = [...sweep.variants].sort((a, b) => weight(sweep, a, shown) - weight(sweep, b, shown));
  return (
    <div ref={ref} className="scroll-x" tabIndex={0} role="group" aria-label="Settings and figures">
      <svg
        width={inner}
        height={HEIGHT}
        display="block"
        role="img"
        aria-label={`${sweep.variants.length} variants over ${sweep.fields.join(", ")} and ${sweep.figure}. ${sweep.verdict}`}
      >
        {lines.map((variant) => {
          const places = axes.map((axis, at) =>
            axis.place(at < sweep.fields.length ? variant.values[axis.name] : variant.figure?.value),
          );
          const points = places.flatMap((place, at) => (place === null ? [] : [`${x(at)},${y(place)}`]));
          const level = weight(sweep, variant, shown);
          return (
            <g
              key={variant.number}
              onMouseEnter={() => onShow(variant.number)}
              onMouseLeave={() => onShow(null)}
            >
              <title>{words(variant, sweep)}</title>
              <polyline points={points.join(" ")} fill="none" stroke="transparent" strokeWidth={12} />
              <polyline
                className="variant-line"
                data-level={level}
                data-variant={variant.number}
                points={points.join(" ")}
              />
            </g>
          );
        })}
        {axes.map((axis, at) => {
          const last = at === axes.length - 1;
          const anchor = at === 0 ? "start" : last ? "end" : "middle";
          const edge = at === 0 ? x(at) - SIDE + 2 : last ? x(at) + SIDE - 2 : x(at);
          return (
            <g key={axis.name}>
              <line className="variant-axis" x1={x(at)} x2={x(at)} y1={y(1)} y2={y(0)} />
              <text className="variant-name" x={edge} y={16} textAnchor={anchor}>
                <title>{axis.name}</title>
                {cut(axis.name, 2 * LONGEST)}
              </text>
              {axis.ticks.map((tick) => (
                <text
                  key={tick.label}
                  className="variant-tick"
                  x={last ? x(at) + 8 : x(at) - 8}
                  y={y(tick.at) + 4}
                  textAnchor={last ? "start" : "end"}
                >
                  {cut(tick.label, LONGEST)}
                </text>
              ))}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

/** 0: worse, or without a figure; 1: within noise of the best; 2: the best; 3: looked at. */
function weight(sweep: Sweep, variant: Variant, shown: number | null): number {
  if (variant.number === shown) return 3;
  if (variant.number === sweep.best) return 2;
  return variant.within_noise ? 1 : 0;
}

function words(variant: Variant, sweep: Sweep): string {
  const settings = sweep.fields.map((field) => `${field} ${written(variant.values[field])}`).join(", ");
  const value = variant.figure?.value;
  return `Variant ${variant.number}: ${settings}${value == null ? "" : `; ${sweep.figure} ${short(value)}`}`;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
