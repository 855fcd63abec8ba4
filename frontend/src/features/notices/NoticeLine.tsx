import { Anchor, Group, Text, VisuallyHidden } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import type { MouseEvent } from "react";
import type { Notice } from "../../api/noticeFeed";
import { When } from "../../shared/When";
import classes from "./notices.module.css";

/** A notice as a link to the page that it is about. */
export function NoticeLine({
  notice,
  project,
  onLeave,
}: {
  notice: Notice;
  project: string;
  onLeave: () => void;
}) {
  const router = useRouter();
  const href = `/p/${encodeURIComponent(project)}${notice.path}`;
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    onLeave();
    router.history.push(href);
  };
  return (
    <Anchor href={href} onClick={open} underline="never" c="inherit" className={classes.line}>
      <Group wrap="nowrap" align="flex-start" gap="xs" justify="space-between">
        <Text size="sm" fw={notice.unread ? 600 : 400} style={{ overflowWrap: "anywhere" }}>
          {notice.unread && (
            <>
              <span className={classes.dot} aria-hidden />
              <VisuallyHidden>Unread: </VisuallyHidden>
            </>
          )}
          {notice.title}
        </Text>
        <Text size="xs" c="dimmed" component="span">
          <When at={notice.created_at} />
        </Text>
      </Group>
      {notice.reason && (
        <Text size="xs" c="dimmed" lineClamp={2} style={{ overflowWrap: "anywhere" }}>
          {notice.reason}
        </Text>
      )}
    </Anchor>
  );
}
