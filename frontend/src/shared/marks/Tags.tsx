import { Badge, Group } from "@mantine/core";

/** The tags of a thing, none where it has none. */
export function Tags({ tags }: { tags: readonly string[] }) {
  if (!tags.length) return null;
  return (
    <Group gap={4} role="list" aria-label="Tags">
      {tags.map((tag) => (
        <Badge key={tag} role="listitem" color="gray" variant="outline" size="sm" tt="none" className="tag">
          {tag}
        </Badge>
      ))}
    </Group>
  );
}
