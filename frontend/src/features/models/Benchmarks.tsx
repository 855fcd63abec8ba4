import { Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { modelBenchmarksQuery } from "../../api/models/models";
import { BenchmarksTable } from "../../shared/report/Benchmarks";
import { judges } from "./HeldOut";
import { PairedBenchmarks } from "./PairedBenchmarks";

/** What benchmark runs found of a model that judges answers. */
export function Benchmarks({ project, model }: { project: string; model: Schemas["ModelDetail"] }) {
  const query = useQuery({ ...modelBenchmarksQuery(project, model.name), enabled: judges(model) });
  if (!query.data?.length) return null;
  return (
    <section>
      <Title order={2} size="h4" mb="sm">
        Benchmarks
      </Title>
      <BenchmarksTable
        project={project}
        benchmarks={query.data}
        label="Benchmarks of the model, the newest first"
      />
      <Text size="xs" c="dimmed">
        How often the right answer is ahead, with the 95% interval. On data that the model was trained on, it
        proves little.
      </Text>
      <PairedBenchmarks key={model.name} project={project} model={model.name} />
    </section>
  );
}
