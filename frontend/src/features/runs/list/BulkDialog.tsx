import { Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { everything, type Schemas } from "../../../api/client";
import { type BulkChange, changeRuns, consequencesQuery } from "../../../api/runs/list";
import { Failure, Loaded } from "../../../shared/Feedback";

type Action = Exclude<BulkChange["action"], "tag">;
type Consequence = Schemas["Consequence"];
type Thing = Schemas["NamedThing"];

const WORDS: Record<Action, { do: string; done: string; about: string }> = {
  archive: {
    do: "Archive",
    done: "archived",
    about: "Archived runs leave the lists and stay as they are. The view Archived shows them.",
  },
  restore: { do: "Restore", done: "restored", about: "The runs come back into the lists." },
  cancel: {
    do: "Cancel",
    done: "cancelled",
    about: "Running ones end at their worker's next heartbeat. Checkpoints are kept, so they can be resumed.",
  },
  delete: {
    do: "Delete",
    done: "deleted",
    about:
      "Their metrics, logs, checkpoints and notes are deleted for good. Models and datasets that they made stay.",
  },
};
/** Names that are listed at a time. */
const LISTED = 8;

interface Properties {
  project: string;
  action: Action;
  runs: string[];
  /** Selects the runs that have to go too. */
  onMore: (runs: string[]) => void;
  onClose: () => void;
  onDone: () => void;
}

/** Shows what would happen to the runs and to what depends on them, before it does. */
export function BulkDialog({ project, action, runs, onMore, onClose, onDone }: Properties) {
  const client = useQueryClient();
  const words = WORDS[action];
  const change: BulkChange = { action, runs, add_tags: [], remove_tags: [], skip: true };
  const expected = useQuery(consequencesQuery(project, change));
  const apply = useMutation({
    mutationFn: () => changeRuns(project, change),
    onSuccess: async (result) => {
      notifications.show({ message: `${several(result.done.length)} ${words.done}`, color: "green" });
      onDone();
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  return (
    <Modal opened onClose={onClose} title={`${words.do} ${several(runs.length)}?`} size="lg">
      <Stack>
        <Text size="sm">{words.about}</Text>
        <Loaded query={expected} rows={2}>
          {({ done, skipped }) => (
            <>
              <Things label={`Also ${words.done}`} things={done.flatMap((one) => one.ends)} />
              <Things label="Deleted with them" things={done.flatMap((one) => one.loses)} />
              <Things
                label="Stays, without the run that made it and without what that cost"
                things={done.flatMap((one) => one.keeps)}
              />
              <Skipped action={action} skipped={skipped} onMore={onMore} />
              {apply.error && <Failure error={apply.error} />}
              <Group justify="flex-end">
                <Button variant="default" onClick={onClose}>
                  {action === "cancel" ? "Keep running" : "Cancel"}
                </Button>
                <Button
                  color={action === "delete" || action === "cancel" ? "red" : undefined}
                  disabled={!done.length}
                  loading={apply.isPending}
                  onClick={() => apply.mutate()}
                >
                  {`${words.do} ${several(done.length)}`}
                </Button>
              </Group>
            </>
          )}
        </Loaded>
      </Stack>
    </Modal>
  );
}

function Skipped({
  action,
  skipped,
  onMore,
}: {
  action: Action;
  skipped: Consequence[];
  onMore: (runs: string[]) => void;
}) {
  if (!skipped.length) return null;
  const needs = [...new Set(skipped.flatMap((one) => one.needs.map((run) => run.id)))];
  return (
    <div>
      <Text size="sm" fw={600}>
        {several(skipped.length)} cannot be {WORDS[action].done}
      </Text>
      <List size="sm">
        {skipped.slice(0, LISTED).map((one) => (
          <List.Item key={one.run.id} style={{ overflowWrap: "anywhere" }}>
            {one.run.name}: {one.why}
          </List.Item>
        ))}
        {skipped.length > LISTED && <List.Item>and {skipped.length - LISTED} more</List.Item>}
      </List>
      {needs.length > 0 && (
        <Button variant="default" size="compact-sm" mt="xs" onClick={() => onMore(needs)}>
          Select {several(needs.length)} that belong to them
        </Button>
      )}
    </div>
  );
}

function Things({ label, things }: { label: string; things: Thing[] }) {
  const named = [...new Map(things.map((one) => [`${one.type} ${one.id}`, one])).values()];
  if (!named.length) return null;
  return (
    <div>
      <Text size="sm" fw={600}>
        {label}
      </Text>
      <List size="sm">
        {named.slice(0, LISTED).map((one) => (
          <List.Item key={`${one.type} ${one.id}`} style={{ overflowWrap: "anywhere" }}>
            {one.type} {one.name}
          </List.Item>
        ))}
        {named.length > LISTED && <List.Item>and {named.length - LISTED} more</List.Item>}
      </List>
    </div>
  );
}

function several(count: number): string {
  return count === 1 ? "1 run" : `${count} runs`;
}
