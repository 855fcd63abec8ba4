import { Button, Group, Kbd, Modal, Stack, Table, Text, Textarea } from "@mantine/core";
import { useState } from "react";

export interface KeyHelp {
  title: string;
  text: string;
  keys: [string[], string][];
}

const EVERYWHERE: KeyHelp["keys"] = [
  [["U"], "undoes the last one"],
  [["S"], "skips this item"],
  [["M"], "opens the comment and the flag; Escape closes them"],
  [["?"], "shows this help"],
];

interface Shown {
  opened: boolean;
  onClose: () => void;
}

export function Help({
  opened,
  onClose,
  instructions,
  help,
}: Shown & { instructions: string; help: KeyHelp }) {
  return (
    <Modal opened={opened} onClose={onClose} title={help.title}>
      <Stack>
        {instructions && <pre className="text">{instructions}</pre>}
        <Text size="sm">{help.text}</Text>
        <Table>
          <Table.Tbody>
            {[...help.keys, ...EVERYWHERE].map(([keys, what]) => (
              <Table.Tr key={what}>
                <Table.Td style={{ whiteSpace: "nowrap" }}>
                  <Group gap={4} wrap="nowrap">
                    {keys.map((key) => (key === "…" ? "…" : <Kbd key={key}>{key}</Kbd>))}
                  </Group>
                </Table.Td>
                <Table.Td>{what}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Stack>
    </Modal>
  );
}

export function SkipDialog({ opened, onClose, onSkip }: Shown & { onSkip: (reason: string) => void }) {
  const [reason, setReason] = useState("");
  const send = () => {
    if (!reason.trim()) return;
    onClose();
    onSkip(reason.trim());
  };
  return (
    <Modal opened={opened} onClose={onClose} title="Skip this item">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Textarea
          data-autofocus
          label="Why?"
          description="Goes to another annotator. Press Enter to skip."
          autosize
          minRows={2}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              send();
            }
          }}
        />
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" disabled={!reason.trim()}>
            Skip
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
