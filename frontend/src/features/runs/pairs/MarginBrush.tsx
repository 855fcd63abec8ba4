import { RangeSlider, Text } from "@mantine/core";
import { type PointerEvent, useState } from "react";
import { Histogram } from "../../../shared/charts/Histogram";
import { signed } from "../../../shared/format/format";
import type { PairMargin } from "../../../api/runs/pairs";
import { binsOf, type Range } from "./margins";

interface Properties {
  pairs: readonly PairMargin[];
  whole: Range;
  range: Range;
  onChange: (range: Range) => void;
  /** What a margin below 0 means. */
  below: string;
}

/** Margins as a histogram. A range is drawn over it with a pointer, or set by the two thumbs below. */
export function MarginBrush({ pairs, whole, range, onChange, below }: Properties) {
  const [from, setFrom] = useState<number | null>(null);
  const [low, high] = whole;
  const valueAt = (event: PointerEvent<HTMLDivElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return low + share * (high - low);
  };
  const share = (value: number) => ((value - low) / (high - low)) * 100;
  const draw = (to: number) => from !== null && onChange([Math.min(from, to), Math.max(from, to)]);
  return (
    <div>
      <div
        style={{ position: "relative", cursor: "crosshair", touchAction: "pan-y", userSelect: "none" }}
        data-testid="margin-brush"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setFrom(valueAt(event));
        }}
        onPointerMove={(event) => draw(valueAt(event))}
        onPointerUp={(event) => {
          draw(valueAt(event));
          setFrom(null);
        }}
        onPointerCancel={() => setFrom(null)}
      >
        <Histogram bins={binsOf(pairs, whole)} from={0} x="margin" />
        <div
          style={{
            position: "absolute",
            top: 0,
            bottom: 36,
            left: `${share(range[0])}%`,
            right: `${100 - share(range[1])}%`,
            pointerEvents: "none",
            background: "color-mix(in srgb, var(--mantine-primary-color-filled) 14%, transparent)",
            borderInline: "1px solid var(--mantine-primary-color-filled)",
          }}
        />
      </div>
      <RangeSlider
        value={range}
        onChange={onChange}
        min={low}
        max={high}
        step={(high - low) / 200}
        minRange={0}
        label={null}
        size="sm"
        thumbFromLabel="Minimum margin"
        thumbToLabel="Largest margin"
      />
      <Text size="xs" c="dimmed" mt={4}>
        Margins from {signed(range[0], 3)} to {signed(range[1], 3)}. Below 0 {below}.
      </Text>
    </div>
  );
}
