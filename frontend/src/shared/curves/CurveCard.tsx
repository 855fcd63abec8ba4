import { Card } from "@mantine/core";
import { IconPin, IconPinFilled } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { metricsQuery } from "../../api/runs/runs";
import { Chart } from "../charts/Chart";
import { Tool } from "../charts/ChartTools";
import type { Shown } from "../charts/layout";
import { type AxisName, AXES } from "./axes";
import type { YRange } from "../charts/yRange";
import { YRangeTool } from "../charts/YRangeTool";
import { type CurveRun, groupLinesOf, linesOf, type RunGroup, xOf } from "./curveLines";
import type { Band } from "./groupMeans";
import { type Curve, curveKey } from "./sections";

/** As many as the server gives of one metric. */
const ALL_POINTS = 10_000;

export function CurveCard({
  project,
  curve,
  runs,
  groups,
  band,
  axis,
  shown,
  yRange,
  onYRange,
  pinned,
  onPin,
}: {
  project: string;
  curve: Curve;
  runs: CurveRun[];
  /** What the runs are drawn as; undefined draws each of them. */
  groups: RunGroup[] | undefined;
  band: Band;
  axis: AxisName;
  shown: Omit<Shown, "yRange">;
  yRange: YRange | undefined;
  onYRange: (range: YRange | undefined) => void;
  pinned: boolean;
  onPin: () => void;
}) {
  const client = useQueryClient();
  const lines = useMemo(
    () => (groups ? groupLinesOf(curve, groups, axis, band) : linesOf(curve, runs, axis)),
    [curve, runs, groups, axis, band],
  );
  const { smoothing, logX, logY } = shown;
  const seen = useMemo(() => ({ smoothing, logX, logY, yRange }), [smoothing, logX, logY, yRange]);
  const x = xOf(curve, axis);
  const whole = async () => {
    const full = runs.map(async (run): Promise<CurveRun> => {
      const own = run.series.filter((one) => curveKey(one.name) === curve.key);
      if (own.every((one) => one.steps === one.points.length)) return run;
      const names = [...own.map((one) => one.name), ...AXES.flatMap(({ metric }) => metric ?? [])];
      const series = await client.fetchQuery(metricsQuery(project, run.id, false, names, ALL_POINTS));
      return { ...run, series };
    });
    const all = await Promise.all(full);
    if (!groups) return linesOf(curve, all, axis);
    const byId = new Map(all.map((run) => [run.id, run]));
    const whole = groups.map((group) => ({ ...group, runs: group.runs.map(({ id }) => byId.get(id)!) }));
    return groupLinesOf(curve, whole, axis, band);
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
        shown={seen}
        sync={`curves over ${x.label}`}
        whole={whole}
        tools={
          <>
            <Tool
              label={`${pinned ? "Unpin" : "Pin"} ${curve.title}`}
              pressed={pinned}
              icon={<Pin size={16} />}
              onClick={onPin}
            />
            <YRangeTool name={curve.title} range={yRange} onRange={onYRange} />
          </>
        }
      />
    </Card>
  );
}
