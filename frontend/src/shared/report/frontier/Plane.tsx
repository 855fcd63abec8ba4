import { useElementSize } from "@mantine/hooks";
import { type PointerEvent, type ReactNode } from "react";
import { short } from "../../format/format";
import { rangeOf, ticksOf } from "./frontier";

const HEIGHT = 360;
const LEFT = 64;
const RIGHT = 24;
const TOP = 16;
const BOTTOM = 48;

interface Axis {
  label: string;
  /** All that is drawn, in any order: the range has some air around them. */
  values: number[];
  write?: (tick: number) => string;
}

/** From values to pixels. `right`: where the plane ends. */
interface Scale {
  x: (value: number) => number;
  y: (value: number) => number;
  right: number;
}

interface Properties {
  name: string;
  /** What is drawn, for those who cannot see it. */
  about: string;
  x: Axis;
  y: Axis;
  children: (scale: Scale) => ReactNode;
  /** Where the pointer is, in pixels of the drawing; null when it leaves. */
  onPoint?: (at: { left: number; top: number } | null, scale: Scale) => void;
}

/** A grid with two axes. Narrow screens scroll it. */
export function Plane({ name, about, x, y, children, onPoint }: Properties) {
  const { ref, width } = useElementSize();
  const inner = Math.max(width, 320);
  const [x0, x1] = rangeOf(x.values);
  const [y0, y1] = rangeOf(y.values);
  const scale: Scale = {
    x: (value) => LEFT + ((value - x0) / (x1 - x0)) * (inner - LEFT - RIGHT),
    y: (value) => TOP + ((y1 - value) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM),
    right: inner - RIGHT,
  };
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    onPoint?.({ left: event.clientX - left, top: event.clientY - top }, scale);
  };
  return (
    <div ref={ref} className="scroll-x" tabIndex={0} role="group" aria-label={name}>
      <svg
        width={inner}
        height={HEIGHT}
        display="block"
        role="img"
        aria-label={about}
        onPointerDown={point}
        onPointerMove={point}
        // A finger that is lifted leaves too, and what it pointed at is still to be read.
        onPointerLeave={(event) => event.pointerType === "mouse" && onPoint?.(null, scale)}
      >
        {ticksOf(x0, x1, inner < 500 ? 4 : 8).map((tick) => (
          <g key={tick}>
            <line
              className="frontier-grid"
              x1={scale.x(tick)}
              x2={scale.x(tick)}
              y1={TOP}
              y2={HEIGHT - BOTTOM}
            />
            <text className="frontier-tick" x={scale.x(tick)} y={HEIGHT - BOTTOM + 16} textAnchor="middle">
              {(x.write ?? short)(tick)}
            </text>
          </g>
        ))}
        {ticksOf(y0, y1).map((tick) => (
          <g key={tick}>
            <line
              className="frontier-grid"
              x1={LEFT}
              x2={scale.right}
              y1={scale.y(tick)}
              y2={scale.y(tick)}
            />
            <text className="frontier-tick" x={LEFT - 8} y={scale.y(tick) + 4} textAnchor="end">
              {(y.write ?? short)(tick)}
            </text>
          </g>
        ))}
        <text className="frontier-name" x={(LEFT + scale.right) / 2} y={HEIGHT - 8} textAnchor="middle">
          {x.label}
        </text>
        <text
          className="frontier-name"
          transform={`translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`}
          textAnchor="middle"
        >
          {y.label}
        </text>
        {children(scale)}
      </svg>
    </div>
  );
}
