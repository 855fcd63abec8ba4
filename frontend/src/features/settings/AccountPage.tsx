import {
  Badge,
  Button,
  Card,
  Group,
  PasswordInput,
  Stack,
  Table,
  Text,
  Title,
  VisuallyHidden,
} from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { changePassword, endSession, sessionQuery } from "../../api/accounts/session";
import { Failure } from "../../shared/Feedback";
import { useProject } from "../../shared/links";
import { MAY, ROLES } from "./members/roles";

const SHORTEST = 10;

export function AccountPage() {
  const project = useProject();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: session } = useSuspenseQuery(sessionQuery);
  const role = session.projects.find((one) => one.name === project)?.role;
  const signOut = useMutation({
    mutationFn: () => endSession(),
    onSuccess: async () => {
      client.clear();
      await navigate({ to: "/sign-in", search: {} });
    },
  });
  return (
    <Stack gap="lg" maw={760}>
      <Card withBorder>
        <Group justify="space-between">
          <div>
            <Title order={2} size="h4" style={{ overflowWrap: "anywhere" }}>
              {session.user}
            </Title>
            <Text size="sm" c="dimmed">
              {session.projects.map((one) => `${one.role} of ${one.name}`).join(", ") ||
                "Not a member of any project"}
            </Text>
          </div>
          <Button variant="default" loading={signOut.isPending} onClick={() => signOut.mutate()}>
            Sign out
          </Button>
        </Group>
        {signOut.error && <Failure error={signOut.error} />}
      </Card>
      <Password has={session.has_password} user={session.user} />
      <Card withBorder>
        <Title order={2} size="h5" mb="xs">
          What each role may do
        </Title>
        <>
          <Table aria-label="What each role may do" horizontalSpacing={3} className="narrow">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>In a project</Table.Th>
                {ROLES.map((one) => (
                  <Table.Th key={one.role} ta="center">
                    {one.role === role ? <Badge miw="max-content">{one.role}</Badge> : one.role}
                    {one.role === role && <VisuallyHidden>, your role in {project}</VisuallyHidden>}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {MAY.map(({ what, roles }) => (
                <Table.Tr key={what}>
                  <Table.Th scope="row" fw={400}>
                    {what}
                  </Table.Th>
                  {ROLES.map((one) => (
                    <Table.Td key={one.role} ta="center">
                      {roles.includes(one.role) ? (
                        <>
                          <IconCheck size={16} aria-hidden />
                          <VisuallyHidden>yes</VisuallyHidden>
                        </>
                      ) : (
                        <Text component="span" size="sm" c="dimmed">
                          no
                        </Text>
                      )}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </>
      </Card>
    </Stack>
  );
}

function Password({ has, user }: { has: boolean; user: string }) {
  const client = useQueryClient();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [again, setAgain] = useState("");
  const set = useMutation({
    mutationFn: () => changePassword({ current: has ? current : null, new: next }),
    onSuccess: async () => {
      setCurrent("");
      setNext("");
      setAgain("");
      await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
    },
  });
  const differs = again !== "" && again !== next;
  const tooShort = next !== "" && next.length < SHORTEST;
  return (
    <Card withBorder>
      <Title order={2} size="h5">
        {has ? "Change your password" : "Set a password"}
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        {has
          ? "This ends all of your other sessions and revokes unused sign-in links."
          : "You signed in with a link. With a password, you can sign in without one; unused links are revoked."}
      </Text>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          // The fields say what is missing.
          if (next.length >= SHORTEST && next === again) set.mutate();
        }}
      >
        <Stack gap="sm" maw={380}>
          {/* For password managers, which otherwise guess whose password it is. */}
          <input type="text" autoComplete="username" value={user} readOnly hidden />
          {has && (
            <PasswordInput
              label="Current password"
              autoComplete="current-password"
              required
              value={current}
              onChange={(event) => setCurrent(event.currentTarget.value)}
            />
          )}
          <PasswordInput
            label="New password"
            description={`At least ${SHORTEST} characters`}
            autoComplete="new-password"
            required
            value={next}
            error={tooShort && `${SHORTEST - next.length} more to go`}
            onChange={(event) => setNext(event.currentTarget.value)}
          />
          <PasswordInput
            label="Repeat new password"
            autoComplete="new-password"
            required
            value={again}
            error={differs && "The two passwords differ"}
            onChange={(event) => setAgain(event.currentTarget.value)}
          />
          {set.error && <Failure error={set.error} />}
          {set.isSuccess && (
            <Text size="sm" role="status">
              Done. From now on you sign in as {user} with this password.
            </Text>
          )}
          <Group>
            <Button type="submit" loading={set.isPending}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
