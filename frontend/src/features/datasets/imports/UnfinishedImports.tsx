import { Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type Import, importsQuery } from "../../../api/datasets/imports";
import { count } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { When } from "../../../shared/When";

const SAYS: Partial<Record<Import["state"], string>> = {
  draft: "needs its columns mapped",
  validating: "is being checked",
  validated: "is checked and ready to import",
  importing: "is being imported",
  failed: "was refused",
};

/** Imports that were begun and have not become a dataset yet. */
export function UnfinishedImports({ project }: { project: string }) {
  const query = useQuery(importsQuery(project));
  const open = (query.data?.items ?? []).filter((one) => one.state in SAYS);
  if (!open.length) return null;
  return (
    <section>
      <Title order={2} size="h4" mb="xs">
        Unfinished imports
      </Title>
      <Stack gap={6}>
        {open.map((one) => (
          <Text key={one.id} size="sm" c="dimmed" component="div">
            <Link
              underline="always"
              to="/p/$project/imports/$import"
              params={{ project, import: one.id }}
              fw={550}
              size="sm"
            >
              {one.name}
            </Link>{" "}
            {SAYS[one.state]}
            {one.progress ? `, ${count(one.progress.read)} rows read` : ""} · <When at={one.updated_at} />
          </Text>
        ))}
      </Stack>
    </section>
  );
}
