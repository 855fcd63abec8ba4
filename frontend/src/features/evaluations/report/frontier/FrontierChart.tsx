import { useElementSize } from "@mantine/hooks";
import { short } from "../../../../shared/format/format";
import { asPercent } from "../Figure";
import { type Curve, type Measure, type Place, rangeOf, ticksOf } from "./frontier";

const HEIGHT = 360;
const LEFT = 64;
const RIGHT = 24;
const TOP = 16;
const BOTTOM = 48;
/** Of a name at 12 px, about so wide a letter. */
const LETTER = 6.6;

interface Properties {
  places: Place[];
  curves: Curve[];
  measure: Measure;
  /** The name of the model that KL is to. */
  to: string;
}

/** What entrants gain against how far they are from a model, each with a cross of its two intervals. The table has the
 * same numbers. */
export function FrontierChart({ places, curves, measure, to }: Properties) {
  const { ref, width } = useElementSize();
  const write = measure.percent ? asPercent : short;
  const [x0, x1] = rangeOf([
    0,
    ...places.flatMap(({ kl }) => [kl.value!, kl.low ?? kl.value!, kl.high ?? kl.value!]),
    ...curves.flatMap(({ points }) => points.map((one) => one.kl)),
  ]);
  const [y0, y1] = rangeOf([
    ...places.flatMap(({ value }) => [value.value!, value.low ?? value.value!, value.high ?? value.value!]),
    ...curves.flatMap(({ points }) => points.map((one) => one.value)),
  ]);
  const inner = Math.max(width, 320);
  const x = (kl: number) => LEFT + ((kl - x0) / (x1 - x0)) * (inner - LEFT - RIGHT);
  const y = (value: number) => TOP + ((y1 - value) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
  const named = places.map(
    (one) => `${one.entrant} ${write(one.value.value!)} at ${short(one.kl.value!)} nats`,
  );
  return (
    <div ref={ref} className="scroll-x" tabIndex={0} role="group" aria-label="Frontier">
      <svg
        width={inner}
        height={HEIGHT}
        display="block"
        role="img"
        aria-label={`${measure.axis} over KL to ${to}. ${named.join("; ")}`}
      >
        {ticksOf(x0, x1, inner < 500 ? 4 : 8).map((tick) => (
          <g key={tick}>
            <line className="frontier-grid" x1={x(tick)} x2={x(tick)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text className="frontier-tick" x={x(tick)} y={HEIGHT - BOTTOM + 16} textAnchor="middle">
              {short(tick)}
            </text>
          </g>
        ))}
        {ticksOf(y0, y1).map((tick) => (
          <g key={tick}>
            <line className="frontier-grid" x1={LEFT} x2={inner - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text className="frontier-tick" x={LEFT - 8} y={y(tick) + 4} textAnchor="end">
              {measure.percent ? Math.round(100 * tick) : short(tick)}
            </text>
          </g>
        ))}
        <text
          className="frontier-name"
          x={(LEFT + inner - RIGHT) / 2}
          y={HEIGHT - 8}
          textAnchor="middle"
        >{`KL to ${to} (nats)`}</text>
        <text
          className="frontier-name"
          transform={`translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`}
          textAnchor="middle"
        >
          {measure.axis}
        </text>
        {curves.map((curve) => (
          <g key={curve.label}>
            <title>{`${curve.label}: KL is at most this`}</title>
            <polyline
              className="frontier-bound"
              points={curve.points.map((one) => `${x(one.kl)},${y(one.value)}`).join(" ")}
            />
            {curve.points.map((one) => (
              <g key={one.n}>
                <circle className="frontier-step" cx={x(one.kl)} cy={y(one.value)} r={2.5} />
                <text className="frontier-tick" x={x(one.kl)} y={y(one.value) - 6} textAnchor="end">
                  {one.n}
                </text>
              </g>
            ))}
          </g>
        ))}
        {places.map((one) => {
          const [at, up] = [x(one.kl.value!), y(one.value.value!)];
          const left = at + 10 + one.entrant.length * LETTER > inner - RIGHT;
          return (
            <g key={one.entrant} className="frontier-entrant" data-bound={one.bound}>
              <title>{`${one.entrant}: ${write(one.value.value!)} at ${short(one.kl.value!)} nats${one.bound ? " at most" : ""}`}</title>
              {one.kl.low != null && one.kl.high != null && (
                <line x1={x(one.kl.low)} x2={x(one.kl.high)} y1={up} y2={up} />
              )}
              {one.value.low != null && one.value.high != null && (
                <line x1={at} x2={at} y1={y(one.value.low)} y2={y(one.value.high)} />
              )}
              <circle cx={at} cy={up} r={4.5} />
              <text
                className="frontier-name"
                x={left ? at - 8 : at + 8}
                y={up - 7}
                textAnchor={left ? "end" : "start"}
              >
                {one.entrant}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
