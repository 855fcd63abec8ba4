import { Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { importsQuery } from "../../../api/datasets/imports";
import { Link, LinkButton } from "../../../shared/links";
import { When } from "../../../shared/When";
import { needsOf } from "./importNeeds";

/** Imports that were begun and have not become a dataset yet, each with what it lacks and the way there. */
export function UnfinishedImports({ project }: { project: string }) {
  const query = useQuery(importsQuery(project));
  const open = (query.data?.items ?? []).flatMap((one) => {
    const needs = needsOf(one);
    return needs ? [{ ...one, needs }] : [];
  });
  if (!open.length) return null;
  return (
    <section aria-label="Unfinished imports">
      <Title order={2} size="h4" mb="xs">
        Unfinished imports
      </Title>
      <Stack gap="sm">
        {open.map(({ id, name, updated_at, needs }) => (
          <Group key={id} justify="space-between" gap="sm">
            <div style={{ flex: 1, minWidth: 240 }}>
              <Text size="sm" component="div">
                <Link
                  underline="always"
                  to="/p/$project/imports/$import"
                  params={{ project, import: id }}
                  fw={550}
                  size="sm"
                >
                  {name}
                </Link>{" "}
                · <When at={updated_at} />
              </Text>
              <Text size="sm" c="dimmed" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
                {needs.lacks}
              </Text>
            </div>
            <LinkButton
              component="a"
              size="xs"
              variant="default"
              to="/p/$project/imports/$import"
              params={{ project, import: id }}
            >
              {needs.step}
            </LinkButton>
          </Group>
        ))}
      </Stack>
    </section>
  );
}
