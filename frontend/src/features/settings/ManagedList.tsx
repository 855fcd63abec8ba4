import { Button, Card, Group, Modal, Stack, Text } from "@mantine/core";
import {
  useMutation,
  useQuery,
  useQueryClient,
  type QueryKey,
  type UseQueryOptions,
} from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Confirm } from "../../shared/Confirm";
import { Empty, Failure, Loaded } from "../../shared/Feedback";

export interface CardActions {
  onChange: () => void;
  onActive: (active: boolean) => void;
  onDelete: () => void;
}

interface Properties<Thing, Key extends QueryKey> {
  query: UseQueryOptions<Thing[], Error, Thing[], Key>;
  about: ReactNode;
  /** The list's name for those who do not see it. */
  label: string;
  create: string;
  none: { title: string; text: ReactNode };
  /** What deleting one does. */
  deleting: ReactNode;
  activate: (thing: Thing, active: boolean) => Promise<unknown>;
  remove: (thing: Thing) => Promise<unknown>;
  card: (thing: Thing, actions: CardActions) => ReactNode;
  form: (thing: Thing | null, onDone: () => void) => ReactNode;
}

/** A list of what can be created, changed, switched off and deleted. */
export function ManagedList<Thing extends { id: string; name: string }, Key extends QueryKey>({
  query,
  about,
  label,
  create,
  none,
  deleting,
  activate,
  remove,
  card,
  form,
}: Properties<Thing, Key>) {
  const client = useQueryClient();
  const things = useQuery(query);
  const [shown, setShown] = useState<Thing | "new" | null>(null);
  const [toDelete, setToDelete] = useState<Thing | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: query.queryKey });
  const activating = useMutation({
    mutationFn: ({ thing, active }: { thing: Thing; active: boolean }) => activate(thing, active),
    onSettled: refresh,
  });
  const removing = useMutation({
    mutationFn: remove,
    onSuccess: async () => {
      setToDelete(null);
      await refresh();
    },
  });
  const button = <Button onClick={() => setShown("new")}>{create}</Button>;
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          {about}
        </Text>
        {!!things.data?.length && button}
      </Group>
      {activating.error && <Failure error={activating.error} />}
      <Loaded query={things} rows={3}>
        {(loaded) =>
          loaded.length ? (
            <Stack gap="sm" role="list" aria-label={label}>
              {loaded.map((thing) => (
                <Card withBorder key={thing.id} role="listitem" data-name={thing.name}>
                  {card(thing, {
                    onChange: () => setShown(thing),
                    onActive: (active) => activating.mutate({ thing, active }),
                    onDelete: () => {
                      removing.reset();
                      setToDelete(thing);
                    },
                  })}
                </Card>
              ))}
            </Stack>
          ) : (
            <Empty title={none.title} action={button}>
              {none.text}
            </Empty>
          )
        }
      </Loaded>
      <Modal
        opened={shown !== null}
        closeOnClickOutside={false}
        onClose={() => setShown(null)}
        title={shown === "new" || !shown ? create : `Change ${shown.name}`}
        size="lg"
      >
        {shown && form(shown === "new" ? null : shown, () => setShown(null))}
      </Modal>
      <Confirm
        title={toDelete && `Delete ${toDelete.name}?`}
        go="Delete"
        pending={removing.isPending}
        error={removing.error}
        onClose={() => setToDelete(null)}
        onGo={() => toDelete && removing.mutate(toDelete)}
      >
        {deleting}
      </Confirm>
    </Stack>
  );
}
