import { Badge, Button, Group, Modal, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { revokeToken, type Token, tokensQuery } from "../../api/accounts/accounts";
import { useNow } from "../../shared/format/clock";
import { Empty, Loaded } from "../../shared/Feedback";
import { useProject } from "../../shared/links";
import { When } from "../../shared/When";
import { Confirm } from "../../shared/Confirm";
import { More } from "../../shared/More";
import { OwnersOnly } from "./OwnersOnly";
import { TokenForm } from "./TokenForm";

export function TokensPage() {
  return (
    <OwnersOnly what="Tokens">
      <Tokens />
    </OwnersOnly>
  );
}

function Tokens() {
  const project = useProject();
  const client = useQueryClient();
  const tokens = useInfiniteQuery(tokensQuery(project));
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const revoke = useMutation({
    mutationFn: (token: string) => revokeToken(project, token),
    onSuccess: async () => {
      setRevoking(null);
      await client.invalidateQueries({ queryKey: tokensQuery(project).queryKey });
    },
  });
  const create = <Button onClick={() => setCreating(true)}>Create a token</Button>;
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          Tokens are for scripts and CI. Each of these works only in {project}, and is revoked when its
          creator leaves the project.
        </Text>
        {!!tokens.data?.pages[0]?.items.length && create}
      </Group>
      <Loaded query={tokens}>
        {(found) => {
          const items = found.pages.flatMap((page) => page.items);
          if (!items.length)
            return (
              <Empty title="No tokens yet" action={create}>
                With one, a script can launch recipes, import data and read reports without a browser.
              </Empty>
            );
          return (
            <>
              <Table.ScrollContainer minWidth={300}>
                <Table aria-label="Tokens, the newest first">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Name</Table.Th>
                      <Table.Th visibleFrom="sm">Scopes</Table.Th>
                      <Table.Th visibleFrom="md">Created</Table.Th>
                      <Table.Th visibleFrom="sm">Last used</Table.Th>
                      <Table.Th visibleFrom="sm">Expires</Table.Th>
                      <Table.Th ta="right">State</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {items.map((token) => (
                      <Row
                        key={token.id}
                        token={token}
                        onRevoke={() => {
                          revoke.reset();
                          setRevoking(token);
                        }}
                      />
                    ))}
                  </Table.Tbody>
                </Table>
              </Table.ScrollContainer>
              <More query={tokens} />
            </>
          );
        }}
      </Loaded>
      <Modal
        closeOnClickOutside={false}
        opened={creating}
        onClose={() => setCreating(false)}
        title="Create a token"
        size="lg"
      >
        <TokenForm project={project} onDone={() => setCreating(false)} />
      </Modal>
      <Confirm
        title={revoking && `Revoke ${revoking.name}?`}
        go="Revoke"
        pending={revoke.isPending}
        error={revoke.error}
        onClose={() => setRevoking(null)}
        onGo={() => revoking && revoke.mutate(revoking.id)}
      >
        It stops working immediately, wherever it is in use, and cannot be restored. Runs that it launched
        continue.
      </Confirm>
    </Stack>
  );
}

function Row({ token, onRevoke }: { token: Token; onRevoke: () => void }) {
  const now = useNow();
  const ended = token.expires_at !== null && Date.parse(token.expires_at) < now;
  const used = token.last_used_at ? <When at={token.last_used_at} /> : "never";
  const ends = token.expires_at ? (
    <time dateTime={token.expires_at} title={new Date(token.expires_at).toLocaleString()}>
      {new Date(token.expires_at).toLocaleDateString(undefined, { dateStyle: "medium" })}
    </time>
  ) : (
    "never"
  );
  return (
    <Table.Tr data-token={token.name}>
      <Table.Td>
        <Text size="sm" fw={550} style={{ overflowWrap: "anywhere" }}>
          {token.name}
        </Text>
        <Text size="xs" c="dimmed" ff="monospace">
          {token.hint}…
        </Text>
        <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
          {token.scopes.join(", ")}; used {used}, expires {ends}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Group gap={4}>
          {token.scopes.map((scope) => (
            <Badge key={scope} color="gray" miw="max-content">
              {scope}
            </Badge>
          ))}
        </Group>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <When at={token.created_at} />
      </Table.Td>
      <Table.Td visibleFrom="sm">{used}</Table.Td>
      <Table.Td visibleFrom="sm">{ends}</Table.Td>
      <Table.Td ta="right">
        {token.revoked_at ? (
          <Text size="sm" c="dimmed" component="span">
            revoked <When at={token.revoked_at} />
          </Text>
        ) : ended ? (
          <Text size="sm" c="dimmed" component="span">
            has ended
          </Text>
        ) : (
          <Button
            size="xs"
            variant="light"
            color="red"
            onClick={onRevoke}
            aria-label={`Revoke ${token.name}`}
          >
            Revoke
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
