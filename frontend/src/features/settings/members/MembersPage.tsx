import { Badge, Button, Group, Select, Stack, Table, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import {
  changeRole,
  makeSignInLink,
  type Member,
  membersQuery,
  removeMember,
  type Role,
} from "../../../api/accounts/accounts";
import type { Schemas } from "../../../api/client";
import { sessionQuery, useMay } from "../../../api/accounts/session";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { useProject } from "../../../shared/links";
import { When } from "../../../shared/When";
import { Confirm } from "../../../shared/Confirm";
import { AddMember, LinkDialog } from "./InviteDialogs";
import { More } from "../../../shared/More";
import { ROLES } from "./roles";

type Link = Schemas["SignInLinkOut"];

export function MembersPage() {
  const project = useProject();
  const client = useQueryClient();
  const navigate = useNavigate();
  const owns = useMay(project, "admin");
  const members = useInfiniteQuery(membersQuery(project));
  const session = useQuery(sessionQuery);
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string | null>(null);
  const [linking, setLinking] = useState<string | null>(null);
  const [link, setLink] = useState<Link | null>(null);
  const me = session.data?.user;

  // Your own role decides what every page offers.
  const refresh = async (user: string) => {
    await client.invalidateQueries({ queryKey: membersQuery(project).queryKey });
    if (user === me) await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
  };
  const change = useMutation({
    mutationFn: ({ user, role }: { user: string; role: Role }) => changeRole(project, user, role),
    onSuccess: async (member) => {
      notifications.show({ message: `${member.user} is now ${member.role}`, color: "green" });
      await refresh(member.user);
    },
  });
  const remove = useMutation({
    mutationFn: (user: string) => removeMember(project, user),
    onSuccess: async (_, user) => {
      setRemoving(null);
      await refresh(user);
      if (user === me) await navigate({ to: "/" });
    },
  });
  const renew = useMutation({
    mutationFn: (user: string) => makeSignInLink(project, user),
    onSuccess: setLink,
  });

  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          The people who see {project}, and what each of them may do. A new role applies immediately.
        </Text>
        {owns && <Button onClick={() => setAdding(true)}>Add a member</Button>}
      </Group>
      {change.error && <Failure error={change.error} />}
      <Loaded query={members}>
        {(found) => {
          const items = found.pages.flatMap((page) => page.items);
          if (!items.length) return <Empty title="No members" />;
          return (
            <>
              <Table aria-label="Members">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Name</Table.Th>
                    <Table.Th>Role</Table.Th>
                    <Table.Th visibleFrom="sm">Added</Table.Th>
                    {owns && <Table.Th ta="right">Actions</Table.Th>}
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {items.map((member) => (
                    <Row
                      key={member.user}
                      member={member}
                      mine={member.user === me}
                      owns={owns}
                      busy={change.isPending && change.variables.user === member.user}
                      onRole={(role) => change.mutate({ user: member.user, role })}
                      onLink={() => {
                        renew.reset();
                        setLink(null);
                        setLinking(member.user);
                      }}
                      onRemove={() => {
                        remove.reset();
                        setRemoving(member.user);
                      }}
                    />
                  ))}
                </Table.Tbody>
              </Table>
              <More query={members} />
            </>
          );
        }}
      </Loaded>
      <AddMember opened={adding} onClose={() => setAdding(false)} />
      <LinkDialog
        user={linking}
        link={link}
        pending={renew.isPending}
        error={renew.error}
        onGo={() => linking && renew.mutate(linking)}
        onClose={() => setLinking(null)}
      />
      <Confirm
        title={removing && (removing === me ? `Leave ${project}?` : `Remove ${removing} from ${project}?`)}
        go={removing === me ? "Leave the project" : "Remove"}
        pending={remove.isPending}
        error={remove.error}
        onClose={() => setRemoving(null)}
        onGo={() => removing && remove.mutate(removing)}
      >
        {removing === me ? "You lose" : `${removing} loses`} access to this project immediately, and the
        tokens and the links to reports that {removing === me ? "you" : "they"} made here are revoked. Data,
        runs and models stay. So does the account, which can be added again.
      </Confirm>
    </Stack>
  );
}

interface RowProperties {
  member: Member;
  mine: boolean;
  owns: boolean;
  busy: boolean;
  onRole: (role: Role) => void;
  onLink: () => void;
  onRemove: () => void;
}

function Row({ member, mine, owns, busy, onRole, onLink, onRemove }: RowProperties) {
  return (
    <Table.Tr data-member={member.user}>
      <Table.Td>
        <Group gap="xs">
          <Text size="sm" fw={550} style={{ overflowWrap: "anywhere" }}>
            {member.user}
          </Text>
          {mine && (
            <Badge color="gray" miw="max-content">
              you
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
          added <When at={member.added_at} />
        </Text>
      </Table.Td>
      <Table.Td>
        {owns ? (
          <Select
            aria-label={`Role of ${member.user}`}
            size="xs"
            w={{ base: 112, sm: 140 }}
            data={ROLES.map(({ role }) => role)}
            value={member.role}
            allowDeselect={false}
            disabled={busy}
            onChange={(role) => role && role !== member.role && onRole(role as Role)}
          />
        ) : (
          member.role
        )}
        {member.by_groups && (
          <Text size="xs" c="dimmed">
            by groups
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <When at={member.added_at} />
      </Table.Td>
      {owns && (
        <Table.Td>
          <Group gap={6} justify="flex-end">
            <Button size="xs" px={{ base: 8, sm: 14 }} variant="default" onClick={onLink}>
              New sign-in link
            </Button>
            <Button
              size="xs"
              px={{ base: 8, sm: 14 }}
              variant="light"
              color="red"
              onClick={onRemove}
              aria-label={`Remove ${member.user}`}
            >
              Remove
            </Button>
          </Group>
        </Table.Td>
      )}
    </Table.Tr>
  );
}
