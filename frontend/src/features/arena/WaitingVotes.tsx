import { Alert, Badge, Group, Tooltip } from "@mantine/core";
import { IconCloudOff } from "@tabler/icons-react";
import { useProject } from "../../shared/links";
import { useOutbox, useParcels } from "../../shared/outbox/useOutbox";
import { useVoteBox } from "./votes";

/** Sends votes from whatever page is open, and shows how many are still waiting. */
export function WaitingVotes() {
  const box = useVoteBox(useProject());
  useOutbox(box);
  const waiting = box.waiting.length;
  if (!box.stuck || !waiting) return null;
  const said = waiting === 1 ? "1 vote waiting" : `${waiting} votes waiting`;
  return (
    <Tooltip label="Kept in this browser, and sent when the connection is back">
      <Badge
        color="orange"
        role="status"
        className="state-badge"
        leftSection={<IconCloudOff size={14} />}
        style={{ flexShrink: 0 }}
      >
        {said}
      </Badge>
    </Tooltip>
  );
}

/** Votes that the server refused for good. */
export function RefusedVotes() {
  const box = useVoteBox(useProject());
  const refused = useParcels(box).filter((vote) => vote.refused);
  if (!refused.length) return null;
  return (
    <Group gap="xs">
      {refused.map((vote) => (
        <Alert
          key={vote.submission}
          color="yellow"
          title="One vote could not be counted"
          withCloseButton
          closeButtonLabel="Understood"
          onClose={() => box.forget(vote.submission)}
          flex={1}
        >
          {vote.refused}
        </Alert>
      ))}
    </Group>
  );
}
