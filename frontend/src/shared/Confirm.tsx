import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Failure } from "./Feedback";

interface Properties {
  title: string | null;
  children: ReactNode;
  /** The way back, where "Cancel" would be what is asked about. */
  keep?: string;
  go: string;
  pending: boolean;
  error: Error | null;
  onClose: () => void;
  onGo: () => void;
}

/** Asks before something that cannot be taken back. Open while it has a title. */
export function Confirm({ title, children, keep = "Cancel", go, pending, error, onClose, onGo }: Properties) {
  return (
    <Modal opened={title !== null} onClose={onClose} title={title}>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        {error && <Failure error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {keep}
          </Button>
          <Button color="red" loading={pending} onClick={onGo}>
            {go}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
