import { Title } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { RunsCurves } from "../../shared/curves/RunsCurves";
import type { Compared } from "./compared";

const route = getRouteApi("/p/$project/compare");

/** Each metric of all runs in one chart; `colors`: the place of each among the colours. */
export function Curves({ project, runs, labels, colors }: Compared & { colors: number[] }) {
  const { metric: chosen } = route.useSearch();
  const navigate = route.useNavigate();
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
        onPin={(metric) =>
          void navigate({
            search: (old) => ({ ...old, metric: metric.length ? metric : undefined }),
            replace: true,
            resetScroll: false,
          })
        }
      />
    </section>
  );
}
