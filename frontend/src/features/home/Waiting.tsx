import { Anchor, Card, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { waitingQuery } from "../../api/runs/inbox";
import { Link } from "../../shared/links";
import { When } from "../../shared/When";

type Item = Schemas["WaitingItem"];

/** What someone has to do before it continues: nothing is shown where nothing is. */
export function Waiting({ project }: { project: string }) {
  const query = useQuery(waitingQuery(project));
  const items = query.data?.items ?? [];
  if (!items.length) return null;
  return (
    <Card withBorder component="section">
      <Title order={2} size="h6" mb="xs">
        Waiting for you
      </Title>
      <Stack gap={6}>
        {items.map((item) => (
          <Group
            key={`${item.kind} ${item.link.id}`}
            justify="space-between"
            wrap="nowrap"
            align="flex-start"
          >
            <div style={{ minWidth: 0 }}>
              <ItemLink project={project} item={item} />
              <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                {item.detail}
              </Text>
            </div>
            <Text size="xs" c="dimmed" component="div">
              <When at={item.at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}

function ItemLink({ project, item }: { project: string; item: Item }) {
  const id = item.link.id ?? "";
  switch (item.link.page) {
    case "pipeline":
      return (
        <Link size="sm" to="/p/$project/pipelines/$pipeline" params={{ project, pipeline: id }}>
          {item.title}
        </Link>
      );
    case "import":
      return (
        <Link size="sm" to="/p/$project/imports/$import" params={{ project, import: id }}>
          {item.title}
        </Link>
      );
    case "members":
      return (
        <Link size="sm" to="/p/$project/settings/members" params={{ project }}>
          {item.title}
        </Link>
      );
    case "queue":
      return (
        <Link size="sm" to="/p/$project/queue" params={{ project }}>
          {item.title}
        </Link>
      );
    case "evaluation":
      return (
        <Anchor size="sm" href={`/p/${project}/evaluations/${id}`}>
          {item.title}
        </Anchor>
      );
    case "campaign":
      return (
        <Link size="sm" to="/p/$project/rank/$campaign" params={{ project, campaign: id }}>
          {item.title}
        </Link>
      );
    default:
      return (
        <Link size="sm" to="/p/$project/datasets" params={{ project }}>
          {item.title}
        </Link>
      );
  }
}
