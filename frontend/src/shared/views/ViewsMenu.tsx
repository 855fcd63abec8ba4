import { ActionIcon, Button, Group, Menu, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type KeptViews, viewsQuery } from "../../api/views";
import { SendForm } from "../forms/SendForm";

interface Properties<Query> {
  views: KeptViews<Query>;
  mayChange: boolean;
  /** Views that every project has. */
  own: readonly [string, Query][];
  /** What the list shows now. */
  query: Query;
  onView: (query: Query) => void;
  /** A view in a few words. */
  words: (query: Query) => string;
  /** What a view keeps. */
  about: string;
  /** A name that a view could have. */
  example: string;
}

/** Views that the project keeps; each is also an address that can be sent to others. */
export function ViewsMenu<Query>(properties: Properties<Query>) {
  const { views: of, mayChange, own, onView, words } = properties;
  const views = useQuery(viewsQuery(of));
  const client = useQueryClient();
  const [naming, name] = useDisclosure();
  const refresh = () => client.invalidateQueries({ queryKey: of.key });
  const remove = useMutation({
    mutationFn: of.remove,
    onSuccess: refresh,
    onError: (error) => notifications.show({ message: error.message, color: "red" }),
  });
  const kept = views.data ?? [];
  return (
    <>
      <Menu position="bottom-end" withinPortal width={260} closeOnItemClick>
        <Menu.Target>
          <Button variant="default" leftSection={<IconBookmark size={16} />}>
            Views
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {own.map(([label, shown]) => (
            <Menu.Item key={label} onClick={() => onView(shown)}>
              {label}
            </Menu.Item>
          ))}
          {kept.length > 0 && <Menu.Label>Of this project</Menu.Label>}
          {kept.map((view) => (
            <Menu.Item key={view.id} onClick={() => onView(view.query)}>
              {view.name}
            </Menu.Item>
          ))}
          {mayChange && (
            <>
              <Menu.Divider />
              <Menu.Item onClick={name.open}>Save or manage views</Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      <Modal opened={naming} onClose={name.close} title="Views of this project">
        <Stack>
          <Keep
            {...properties}
            onDone={() => {
              name.close();
              void refresh();
            }}
          />
          {kept.map((view) => (
            <Group key={view.id} justify="space-between" wrap="nowrap">
              <div style={{ minWidth: 0, overflowWrap: "anywhere" }}>
                <Text size="sm">{view.name}</Text>
                <Text size="xs" c="dimmed">
                  {words(view.query)}, by {view.created_by}
                </Text>
              </div>
              <ActionIcon
                variant="subtle"
                color="red"
                aria-label={`Delete the view ${view.name}`}
                onClick={() => remove.mutate(view.name)}
              >
                <IconTrash size={16} />
              </ActionIcon>
            </Group>
          ))}
        </Stack>
      </Modal>
    </>
  );
}

function Keep<Query>({ views, query, about, example, onDone }: Properties<Query> & { onDone: () => void }) {
  const [name, setName] = useState("");
  const keep = useMutation({
    mutationFn: () => views.keep(name.trim(), query),
    onSuccess: () => {
      notifications.show({ message: `The view ${name.trim()} is kept`, color: "green" });
      onDone();
    },
  });
  return (
    <SendForm send={keep} label="Save the view" disabled={!name.trim()}>
      <TextInput
        label="Name"
        description={about}
        placeholder={example}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
    </SendForm>
  );
}
