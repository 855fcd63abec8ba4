import { Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { comparisonsQuery } from "../../api/models/playground";
import { Link } from "../../shared/links";
import { When } from "../../shared/When";
import { shown as asked } from "../../shared/forms/condition";
import { targetOf } from "./draft";

/** Comparisons that were made before, each behind its own link. */
export function Earlier({ project, shown }: { project: string; shown: string | undefined }) {
  const query = useQuery(comparisonsQuery(project));
  const others = query.data?.items.filter((one) => one.id !== shown) ?? [];
  if (!others.length) return null;
  return (
    <section>
      <Title order={2} size="h4" mb="xs">
        Earlier comparisons
      </Title>
      <Stack gap={6}>
        {others.map((one) => (
          <Group key={one.id} justify="space-between" wrap="nowrap" gap="md">
            <div style={{ minWidth: 0 }}>
              <Link
                to="/p/$project/playground"
                params={{ project }}
                search={{ c: one.id }}
                size="sm"
                lineClamp={1}
              >
                {one.prompt.at(-1)?.content ?? ""}
              </Link>
              <Text size="xs" c="dimmed" lineClamp={1}>
                {one.columns
                  .map((answer) =>
                    [targetOf(answer).replace(/^\w+:/, ""), answer.score == null ? null : asked(answer.score)]
                      .filter(Boolean)
                      .join(" at "),
                  )
                  .join(", ")}
              </Text>
            </div>
            <Text size="xs" c="dimmed" component="div">
              <When at={one.created_at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </section>
  );
}
