import {
  ActionIcon,
  Group,
  Indicator,
  Popover,
  ScrollArea,
  SegmentedControl,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconBell } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { markRead, noticesKey, noticesQuery, unreadQuery } from "../../api/noticeFeed";
import { useMay } from "../../api/accounts/session";
import { Loaded } from "../../shared/Feedback";
import { Link, useProject } from "../../shared/links";
import { More } from "../../shared/More";
import { NoticeLine } from "./NoticeLine";
import { counted, newest } from "./noticeCount";

/** What happened in the project: closing it marks what was shown as read. */
export function NoticesBell() {
  const project = useProject();
  const client = useQueryClient();
  const unread = useQuery(unreadQuery(project)).data ?? { notices: 0, mentions: 0 };
  const close = () => {
    setOpened.close();
    const until = newest(client.getQueriesData({ queryKey: [...noticesKey(project), "list"] }));
    if (until === null || !unread.notices) return;
    void markRead(project, until).then(() => client.invalidateQueries({ queryKey: noticesKey(project) }));
  };
  const [opened, setOpened] = useDisclosure();
  const label = unread.notices ? `Notices, ${counted(unread.notices)} unread` : "Notices";
  return (
    <Popover
      opened={opened}
      onChange={(open) => (open ? setOpened.open() : close())}
      position="bottom-end"
      width="min(26rem, calc(100vw - 1.5rem))"
      shadow="md"
      trapFocus
      returnFocus
    >
      <Indicator
        disabled={!unread.notices}
        label={<span aria-hidden>{counted(unread.notices)}</span>}
        size={16}
        offset={5}
        color={unread.mentions ? "red.8" : "blue.8"}
      >
        <Popover.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={label}
            onClick={() => (opened ? close() : setOpened.open())}
          >
            <IconBell size={18} />
          </ActionIcon>
        </Popover.Target>
      </Indicator>
      <Popover.Dropdown p={0} aria-label="Notices">
        {opened && <Notices mentions={unread.mentions} onLeave={close} />}
      </Popover.Dropdown>
    </Popover>
  );
}

function Notices({ mentions, onLeave }: { mentions: number; onLeave: () => void }) {
  const project = useProject();
  const [shown, setShown] = useState("all");
  const query = useInfiniteQuery(noticesQuery(project, shown === "mentions"));
  const mayAdmin = useMay(project, "admin");
  return (
    <Stack gap={0}>
      <Group justify="space-between" p="sm" pb="xs">
        <Title order={2} size="h6">
          Notices
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Shown notices"
          value={shown}
          onChange={setShown}
          data={[
            { value: "all", label: "All" },
            { value: "mentions", label: mentions ? `Mentions (${counted(mentions)})` : "Mentions" },
          ]}
        />
      </Group>
      <ScrollArea.Autosize mah="min(60vh, 32rem)" type="auto" tabIndex={-1}>
        <Loaded query={query} rows={4}>
          {({ pages }) => {
            const items = pages.flatMap((page) => page.items);
            if (!items.length)
              return (
                <Text size="sm" c="dimmed" p="sm">
                  {shown === "mentions"
                    ? "No comment of the last month mentions you."
                    : "Nothing has happened in the last month. Pipelines and single runs that end, stages that fail, broken health rules, gates, campaigns and mentions show here."}
                </Text>
              );
            return (
              <Stack gap={0} component="ul" m={0} p={0} style={{ listStyle: "none" }}>
                {items.map((notice) => (
                  <li key={notice.id}>
                    <NoticeLine notice={notice} project={project} onLeave={onLeave} />
                  </li>
                ))}
              </Stack>
            );
          }}
        </Loaded>
        <More query={query} />
      </ScrollArea.Autosize>
      {mayAdmin && (
        <Text size="xs" p="sm" c="dimmed">
          Slack, e-mail and webhooks:{" "}
          <Link
            inherit
            underline="always"
            to="/p/$project/settings/notices"
            params={{ project }}
            onClick={onLeave}
          >
            notice rules
          </Link>
        </Text>
      )}
    </Stack>
  );
}
