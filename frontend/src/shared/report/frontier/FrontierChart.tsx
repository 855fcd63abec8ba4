import { short } from "../../format/format";
import { asPercent } from "../Figure";
import type { Curve, Measure, Place } from "./frontier";
import { Plane } from "./Plane";

/** The width of a letter of a name at 12 px, about. */
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
  const write = measure.percent ? asPercent : short;
  const named = places.map(
    (one) => `${one.entrant} ${write(one.value.value!)} at ${short(one.kl.value!)} nats`,
  );
  const points = curves.flatMap((curve) => curve.points);
  return (
    <Plane
      name="Frontier"
      about={`${measure.axis} over KL to ${to}. ${named.join("; ")}`}
      x={{
        label: `KL to ${to} (nats)`,
        values: [
          0,
          ...places.flatMap(({ kl }) => [kl.value!, kl.low ?? kl.value!, kl.high ?? kl.value!]),
          ...points.map((one) => one.kl),
        ],
      }}
      y={{
        label: measure.axis,
        values: [
          ...places.flatMap(({ value }) => [
            value.value!,
            value.low ?? value.value!,
            value.high ?? value.value!,
          ]),
          ...points.map((one) => one.value),
        ],
        write: (tick) => (measure.percent ? String(Math.round(100 * tick)) : short(tick)),
      }}
    >
      {({ x, y, right }) => (
        <>
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
            const left = at + 10 + one.entrant.length * LETTER > right;
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
        </>
      )}
    </Plane>
  );
}
