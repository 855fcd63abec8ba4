import { Button, Group, Kbd, Modal, Stack, Table, Text, Textarea } from "@mantine/core";
import { useState } from "react";

const KEYS: [string[], string][] = [
  [["1", "…", "9"], "gives the marked answer this rank; equal ranks are a tie"],
  [["="], "ties the marked answer with the one before it in the order"],
  [["0"], "takes the rank of the marked answer away"],
  [["←", "→"], "marks another answer"],
  [["↑", "↓"], "scrolls the marked answer"],
  [["A", "…", "H"], "marks that answer"],
  [["Enter"], "submits"],
  [["U"], "undoes the last one"],
  [["S"], "skips this item"],
  [["M"], "opens the comment and the flag; Escape leaves them"],
  [["?"], "shows this"],
];
const CRITERIA_KEYS: [string[], string] = [[",", "."], "goes to the criterion before or after"];

interface Shown {
  opened: boolean;
  onClose: () => void;
}

export function Help({
  opened,
  onClose,
  instructions,
  criteria,
}: Shown & { instructions: string; criteria: boolean }) {
  const rows = criteria ? [...KEYS, CRITERIA_KEYS] : KEYS;
  return (
    <Modal opened={opened} onClose={onClose} title="How to rank">
      <Stack>
        {instructions && <pre className="text">{instructions}</pre>}
        <Text size="sm">
          Put the answers in order, the best first: drag the letters at the bottom, press the round buttons of
          the answers one after another, or use the keys. The sign between two letters makes them a tie. What
          you do is saved as you go.
        </Text>
        <Table>
          <Table.Tbody>
            {rows.map(([keys, what]) => (
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
