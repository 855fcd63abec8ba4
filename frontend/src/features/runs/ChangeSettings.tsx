import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { everything } from "../../api/client";
import { changeRun, type RunDetail } from "../../api/runs/runs";
import { Failure } from "../../shared/Feedback";
import { runName } from "../../shared/format/runName";
import { useProject } from "../../shared/links";
import { show } from "../../shared/forms/valueText";

/** Other settings for a run that trains, from its next step on. */
export function ChangeSettings({ run }: { run: RunDetail }) {
  const project = useProject();
  const client = useQueryClient();
  const [opened, open] = useDisclosure();
  const [texts, setTexts] = useState<Record<string, string>>({});
  const values = Object.fromEntries(
    Object.entries(run.changeable)
      .map(([name, now]): [string, number, number] => [name, now, Number(texts[name]?.trim() || now)])
      .filter(([, now, value]) => value !== now)
      .map(([name, , value]) => [name, value]),
  );
  const wrong = Object.values(values).some((value) => !Number.isFinite(value));
  const change = useMutation({
    mutationFn: () => changeRun(project, run.id, values),
    onSuccess: async () => {
      close();
      notifications.show({ message: "In effect from the next step on; see the timeline", color: "gray" });
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  const close = () => {
    open.close();
    setTexts({});
    change.reset();
  };
  return (
    <>
      <Button variant="default" onClick={open.open}>
        Change settings
      </Button>
      <Modal opened={opened} onClose={close} title={`Settings of ${runName(run)}`}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            change.mutate();
          }}
        >
          <Stack gap="sm">
            <Text size="sm">
              They take effect from the next optimiser step on, and are recorded in the timeline and in the
              model&apos;s lineage.
            </Text>
            {Object.entries(run.changeable).map(([name, now]) => (
              <TextInput
                key={name}
                label={name}
                inputMode="decimal"
                value={texts[name] ?? show(now)}
                error={name in values && !Number.isFinite(values[name]) ? "not a number" : undefined}
                onChange={(event) => {
                  const text = event.currentTarget.value;
                  setTexts((before) => ({ ...before, [name]: text }));
                }}
              />
            ))}
            {change.error && <Failure error={change.error} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button
                type="submit"
                loading={change.isPending}
                disabled={wrong || Object.keys(values).length === 0}
              >
                Change
              </Button>
            </Group>
          </Stack>
        </form>
      </Modal>
    </>
  );
}
