import { Button, Card, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { changeTracker, deleteTracker, type Tracker, trackersQuery } from "../../../api/accounts/trackers";
import { Confirm } from "../../../shared/Confirm";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { useProject } from "../../../shared/links";
import { OwnersOnly } from "../OwnersOnly";
import { TrackerCard } from "./TrackerCard";
import { TrackerForm } from "./TrackerForm";

export function TrackersPage() {
  return (
    <OwnersOnly what="Trackers">
      <Trackers />
    </OwnersOnly>
  );
}

function Trackers() {
  const project = useProject();
  const client = useQueryClient();
  const trackers = useQuery(trackersQuery(project));
  const [form, setForm] = useState<Tracker | "new" | null>(null);
  const [deleting, setDeleting] = useState<Tracker | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: trackersQuery(project).queryKey });
  const activate = useMutation({
    mutationFn: ({ tracker, active }: { tracker: Tracker; active: boolean }) =>
      changeTracker(project, tracker.id, { active }),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: (tracker: Tracker) => deleteTracker(project, tracker.id),
    onSuccess: async () => {
      setDeleting(null);
      await refresh();
    },
  });
  const create = <Button onClick={() => setForm("new")}>Add a tracker</Button>;
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          Runs of {project} are exported to each tracker while they run: metrics, settings, results and links.
          A run never waits for a tracker, and never fails because of one.
        </Text>
        {!!trackers.data?.length && create}
      </Group>
      {activate.error && <Failure error={activate.error} />}
      <Loaded query={trackers} rows={3}>
        {(found) =>
          found.length ? (
            <Stack gap="sm" role="list" aria-label="Trackers">
              {found.map((tracker) => (
                <Card withBorder key={tracker.id} role="listitem" data-tracker={tracker.name}>
                  <TrackerCard
                    tracker={tracker}
                    onChange={() => setForm(tracker)}
                    onActive={(active) => activate.mutate({ tracker, active })}
                    onDelete={() => {
                      remove.reset();
                      setDeleting(tracker);
                    }}
                  />
                </Card>
              ))}
            </Stack>
          ) : (
            <Empty title="No trackers yet" action={create}>
              With one, the project&apos;s runs also appear in MLflow, W&amp;B, TensorBoard or Trackio.
            </Empty>
          )
        }
      </Loaded>
      <Modal
        opened={form !== null}
        closeOnClickOutside={false}
        onClose={() => setForm(null)}
        title={form === "new" || !form ? "Add a tracker" : `Change ${form.name}`}
        size="lg"
      >
        {form && (
          <TrackerForm
            project={project}
            tracker={form === "new" ? null : form}
            onDone={() => setForm(null)}
          />
        )}
      </Modal>
      <Confirm
        title={deleting && `Delete ${deleting.name}?`}
        keep="Keep it"
        go="Delete"
        pending={remove.isPending}
        error={remove.error}
        onClose={() => setDeleting(null)}
        onGo={() => deleting && remove.mutate(deleting)}
      >
        What was exported stays in the tracker; the links on the runs&apos; pages go. To export nothing for a
        while, switch it off instead.
      </Confirm>
    </Stack>
  );
}
