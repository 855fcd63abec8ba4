import { Card } from "@mantine/core";
import { IconPin, IconPinFilled } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { metricsQuery } from "../../api/runs/runs";
import { Chart } from "../charts/Chart";
import { Tool } from "../charts/ChartTools";
import type { Shown } from "../charts/layout";
import { type AxisName, AXES } from "./axes";
import { type CurveRun, linesOf, xOf } from "./curveLines";
import { type Curve, curveKey } from "./sections";

/** As many as the server gives of one metric. */
const ALL_POINTS = 10_000;

export function CurveCard({
  project,
  curve,
  runs,
  axis,
  shown,
  pinned,
  onPin,
}: {
  project: string;
  curve: Curve;
  runs: CurveRun[];
  axis: AxisName;
  shown: Shown;
  pinned: boolean;
  onPin: () => void;
}) {
  const client = useQueryClient();
  const lines = useMemo(() => linesOf(curve, runs, axis), [curve, runs, axis]);
  const x = xOf(curve, axis);
  const whole = async () => {
    const full = runs.map(async (run): Promise<CurveRun> => {
      const own = run.series.filter((one) => curveKey(one.name) === curve.key);
      if (own.every((one) => one.steps === one.points.length)) return run;
      const names = [...own.map((one) => one.name), ...AXES.flatMap(({ metric }) => metric ?? [])];
      const series = await client.fetchQuery(metricsQuery(project, run.id, false, names, ALL_POINTS));
      return { ...run, series };
    });
    return linesOf(curve, await Promise.all(full), axis);
  };
  const Pin = pinned ? IconPinFilled : IconPin;
  return (
    <Card withBorder p="sm">
      <Chart
        title={curve.title}
        lines={lines}
        x={x}
        y={curve.key.replace("device/", "")}
        height={runs.length > 1 ? 260 : 200}
        shown={shown}
        sync={`curves over ${x.label}`}
        whole={whole}
        tools={
          <Tool
            label={`${pinned ? "Unpin" : "Pin"} ${curve.title}`}
            pressed={pinned}
            icon={<Pin size={16} />}
            onClick={onPin}
          />
        }
      />
    </Card>
  );
}
