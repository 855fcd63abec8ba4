import { Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { modelAcademicQuery } from "../../api/models/models";
import { AcademicTable, DIFFERENCES } from "../../shared/report/Academic";

/** What academic runs found of a model, task by task. */
export function Academic({ project, model }: { project: string; model: string }) {
  const query = useQuery(modelAcademicQuery(project, model));
  if (!query.data?.length) return null;
  return (
    <section>
      <Title order={2} size="h4" mb="sm">
        Academic benchmarks
      </Title>
      <AcademicTable rows={query.data} label="Academic benchmarks of the model, the newest of each" />
      <Text size="xs" c="dimmed">
        The newest result of each task. {DIFFERENCES}
      </Text>
    </section>
  );
}
