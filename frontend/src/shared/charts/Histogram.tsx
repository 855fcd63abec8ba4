import { useElementSize } from "@mantine/hooks";
import { count, short } from "../format/format";

interface Bin {
  low: number;
  high: number;
  count: number;
}

/** Counts over a range. Bars whose range is above `from` are filled; the line marks it. */
export function Histogram({
  bins,
  from,
  x,
  height = 180,
}: {
  bins: Bin[];
  from?: number;
  x: string;
  height?: number;
}) {
  const { ref, width } = useElementSize();
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const low = bins[0]?.low ?? 0;
  const high = bins.at(-1)?.high ?? 1;
  const inner = height - 36;
  const at = (value: number) => ((value - low) / (high - low || 1)) * width;
  const total = bins.reduce((sum, bin) => sum + bin.count, 0);
  return (
    <div ref={ref}>
      <svg
        width="100%"
        height={height}
        role="img"
        aria-label={`${count(total)} values from ${short(low)} to ${short(high)} of ${x}`}
      >
        {bins.map((bin) => {
          const tall = (bin.count / most) * inner;
          const kept = from === undefined || bin.high > from;
          return (
            <rect
              key={bin.low}
              x={at(bin.low) + 0.5}
              y={inner - tall}
              width={Math.max(0.5, at(bin.high) - at(bin.low) - 1)}
              height={tall}
              fill={kept ? "var(--mantine-primary-color-filled)" : "var(--mantine-color-gray-5)"}
            >
              <title>{`${short(bin.low)} to ${short(bin.high)}: ${count(bin.count)}`}</title>
            </rect>
          );
        })}
        {from !== undefined && from >= low && from <= high && (
          <line
            x1={at(from)}
            x2={at(from)}
            y1={0}
            y2={inner}
            stroke="var(--mantine-color-red-6)"
            strokeWidth={2}
          />
        )}
        <line
          x1={0}
          x2={width}
          y1={inner + 0.5}
          y2={inner + 0.5}
          stroke="var(--mantine-color-default-border)"
        />
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <text
            key={share}
            x={share * width}
            y={inner + 16}
            fontSize={11}
            fill="var(--mantine-color-dimmed)"
            textAnchor={share === 0 ? "start" : share === 1 ? "end" : "middle"}
          >
            {short(Number((low + share * (high - low)).toPrecision(3)))}
          </text>
        ))}
        <text
          x={width / 2}
          y={height - 4}
          fontSize={12}
          fill="var(--mantine-color-dimmed)"
          textAnchor="middle"
        >
          {x}
        </text>
      </svg>
    </div>
  );
}
