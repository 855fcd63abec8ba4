import { Title } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { RunsCurves } from "../../shared/curves/RunsCurves";
import type { Compared } from "./compared";

const route = getRouteApi("/p/$project/compare");

/** Each metric of all runs in one chart; `colors`: the place of each among the colours. */
export function Curves({ project, runs, labels, colors }: Compared & { colors: number[] }) {
  const { metric: chosen, group } = route.useSearch();
  const navigate = route.useNavigate();
  const change = (some: { metric?: string[]; group?: string }) =>
    void navigate({ search: (old) => ({ ...old, ...some }), replace: true, resetScroll: false });
  return (
    <section>
      <Title order={2} size="h4" mb="sm">
        Curves
      </Title>
      <RunsCurves
        project={project}
        runs={runs}
        labels={labels}
        colors={colors}
        pinned={chosen}
        onPin={(metric) => change({ metric: metric.length ? metric : undefined })}
        groupBy={group}
        onGroupBy={(by) => change({ group: by ?? undefined })}
      />
    </section>
  );
}
