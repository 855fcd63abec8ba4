import { Group } from "@mantine/core";
import { IconFlag, IconMessage, IconPencil, IconTrash } from "@tabler/icons-react";
import type { Schemas } from "../../../api/client";

const SIZE = 14;

/** What people noted on a row, as icons with their names. */
export function RowMarks({ marks }: { marks: Schemas["RowMarks"] | null | undefined }) {
  if (!marks) return null;
  return (
    <Group gap={2} wrap="nowrap" component="span" c="dimmed">
      {marks.flagged && <IconFlag size={SIZE} role="img" aria-label="flagged" />}
      {marks.comments > 0 && <IconMessage size={SIZE} role="img" aria-label="commented" />}
      {marks.change === "edit" && <IconPencil size={SIZE} role="img" aria-label="changed" />}
      {marks.change === "remove" && <IconTrash size={SIZE} role="img" aria-label="to be removed" />}
    </Group>
  );
}
