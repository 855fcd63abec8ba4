import { Badge, Box, Button, Drawer, Group, Stack, Table, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { everything } from "../../api/client";
import {
  type Collection,
  collectionRowsQuery,
  collectionsQuery,
  freezeCollection,
  removeCollectionRow,
  restoreCollectionRow,
} from "../../api/datasets/collections";
import { useMay } from "../../api/accounts/session";
import { Empty, Failure, Loaded } from "../../shared/Feedback";
import { count, counted } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { Turns } from "../../shared/text/Turns";

/** Samples that people put together one by one, until a version of them becomes a dataset. */
export function Collections({ project }: { project: string }) {
  const query = useQuery(collectionsQuery(project));
  const [open, setOpen] = useState<string | null>(null);
  if (!query.data?.length) return null;
  return (
    <section>
      <Title order={2} size="h4">
        Collections
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        Answers and preferences saved one by one. A version of a collection is a dataset like any other.
      </Text>
      <Table.ScrollContainer minWidth={300}>
        <Table aria-label="Collections">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Collection</Table.Th>
              <Table.Th visibleFrom="sm">Kind</Table.Th>
              <Table.Th ta="right">Rows</Table.Th>
              <Table.Th visibleFrom="sm">Versions</Table.Th>
              <Table.Th>
                <span className="unseen">Actions</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {query.data.map((one) => (
              <CollectionLine
                key={one.id}
                project={project}
                collection={one}
                onOpen={() => setOpen(one.name)}
              />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {open && <RowsDrawer project={project} collection={open} onClose={() => setOpen(null)} />}
    </section>
  );
}

function CollectionLine({
  project,
  collection,
  onOpen,
}: {
  project: string;
  collection: Collection;
  onOpen: () => void;
}) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const freeze = useMutation({
    mutationFn: () => freezeCollection(project, collection.name),
    onSuccess: async (made) => {
      notifications.show({ message: `${made.name} is a dataset with ${counted(made.rows, "row")}` });
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  const fresh = collection.rows - collection.frozen_rows;
  const actions = (
    <Group gap={4} justify="flex-end">
      <Button size="compact-sm" variant="subtle" onClick={onOpen}>
        Rows
      </Button>
      {mayWrite && (
        <Button
          size="compact-sm"
          variant="default"
          disabled={!collection.rows}
          loading={freeze.isPending}
          onClick={() => freeze.mutate()}
        >
          Make a version
        </Button>
      )}
    </Group>
  );
  const versions = (
    <Group gap="xs">
      {collection.datasets.map((version) => (
        <Link
          key={version.id}
          size="sm"
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: version.name }}
          search={{}}
        >
          {version.name}
        </Link>
      ))}
    </Group>
  );
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: "anywhere" }}>
        <Text size="sm" fw={550}>
          {collection.name}
        </Text>
        <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
          {collection.kind}
          {versions}
        </Text>
        <Box hiddenFrom="sm" mt={4}>
          {actions}
        </Box>
      </Table.Td>
      <Table.Td visibleFrom="sm">{collection.kind}</Table.Td>
      <Table.Td ta="right">
        {count(collection.rows)}
        {fresh > 0 && (
          <Badge ml="xs" className="state-badge" color="orange">
            {count(fresh)} new
          </Badge>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">{versions}</Table.Td>
      <Table.Td>
        <Box visibleFrom="sm">{actions}</Box>
        {freeze.error && <Failure error={freeze.error} />}
      </Table.Td>
    </Table.Tr>
  );
}

function RowsDrawer({
  project,
  collection,
  onClose,
}: {
  project: string;
  collection: string;
  onClose: () => void;
}) {
  const query = useQuery(collectionRowsQuery(project, collection, false));
  const removed = useQuery(collectionRowsQuery(project, collection, true));
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="xl"
      title={collection}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loaded query={query} rows={4}>
        {(page) =>
          page.items.length ? (
            <Stack>
              {page.items.map((row) => (
                <CollectionRow key={row.id} project={project} collection={collection} row={row} />
              ))}
            </Stack>
          ) : (
            <Empty title="No rows yet">Save an answer or a preference in the playground.</Empty>
          )
        }
      </Loaded>
      {!!removed.data?.items.length && (
        <Stack mt="lg">
          <Title order={3} size="h6">
            Removed
          </Title>
          {removed.data.items.map((row) => (
            <CollectionRow key={row.id} project={project} collection={collection} row={row} gone />
          ))}
        </Stack>
      )}
    </Drawer>
  );
}

interface RowProperties {
  project: string;
  collection: string;
  row: { id: string; sample: Record<string, unknown>; cut?: boolean };
  gone?: boolean;
}

function CollectionRow({ project, collection, row, gone = false }: RowProperties) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const change = useMutation({
    mutationFn: async () => {
      if (gone) {
        await restoreCollectionRow(project, collection, row.id);
      } else {
        await removeCollectionRow(project, collection, row.id);
      }
    },
    onSuccess: () => client.invalidateQueries({ queryKey: collectionsQuery(project).queryKey }),
  });
  const { prompt, ...texts } = row.sample;
  return (
    <Stack gap={6}>
      <Group justify="flex-end">
        {mayWrite && (
          <Button
            size="compact-xs"
            variant="subtle"
            color="gray"
            loading={change.isPending}
            onClick={() => change.mutate()}
          >
            {gone ? "Restore" : "Remove"}
          </Button>
        )}
      </Group>
      <Turns turns={(prompt ?? []) as { role: string; content: string }[]} />
      <Turns turns={Object.entries(texts).map(([role, content]) => ({ role, content: String(content) }))} />
      {row.cut && (
        <Text size="sm" c="dimmed">
          Only the beginning is shown; a version of the collection contains the whole text.
        </Text>
      )}
      {change.error && <Failure error={change.error} />}
    </Stack>
  );
}
