import { Badge, Card, Group, SimpleGrid, Stack, Text, TextInput, Title } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { LinkButton } from "../../shared/links";
import { type Kind, kindGroups } from "./kindGroups";

interface Properties {
  project: string;
  kinds: Kind[];
  title?: string;
  /** The dataset that the form begins with. */
  data?: { name: string; kind: string };
}

/** Kinds of single runs, by the data that they need. */
export function SingleRuns({ project, kinds, title = "Single runs", data }: Properties) {
  const [part, setPart] = useState("");
  const groups = kindGroups(kinds, part);
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          {title}
        </Title>
        <TextInput
          aria-label="Find a method"
          placeholder="Find a method by any of its names"
          leftSection={<IconSearch size={16} />}
          w={{ base: "100%", xs: 280 }}
          value={part}
          onChange={(event) => setPart(event.currentTarget.value)}
        />
      </Group>
      <Stack gap="lg">
        {groups.map((group) => (
          <section key={group.title}>
            <Title order={3} size="h6" mb="xs">
              {group.title}
            </Title>
            <SimpleGrid cols={{ base: 1, sm: 2, lg: 3, xl: 5 }}>
              {group.kinds.map(({ key, title, about, training, for_data }) => (
                <Card withBorder key={key} p="sm">
                  <Group gap={6} justify="space-between">
                    <Text fw={600} size="sm">
                      {title}
                    </Text>
                    {training?.recommended && <Badge size="sm">recommended</Badge>}
                  </Group>
                  <Text size="sm" c="dimmed" mb="sm" style={{ flex: 1 }}>
                    {about}
                  </Text>
                  <LinkButton
                    component="a"
                    variant="default"
                    size="xs"
                    to="/p/$project/launch/$kind"
                    params={{ project, kind: key }}
                    search={data ? { data: data.name } : {}}
                    aria-label={data ? undefined : `Set up ${title}`}
                  >
                    {data ? for_data[data.kind] : "Set up"}
                  </LinkButton>
                </Card>
              ))}
            </SimpleGrid>
          </section>
        ))}
        {!groups.length && (
          <Text size="sm" c="dimmed" role="status">
            No method has “{part}” in its name, abbreviation or description.
          </Text>
        )}
      </Stack>
    </section>
  );
}
