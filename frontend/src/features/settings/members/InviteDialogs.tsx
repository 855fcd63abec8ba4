import { Button, Group, Modal, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { addMember, membersQuery, type Role } from "../../../api/accounts/accounts";
import { signInMethodsQuery } from "../../../api/accounts/session";
import type { Schemas } from "../../../api/client";
import { SendForm } from "../../../shared/forms/SendForm";
import { useProject } from "../../../shared/links";
import { Confirm } from "../../../shared/Confirm";
import { ROLES } from "./roles";
import { ShownOnce } from "../../../shared/text/ShownOnce";

type Link = Schemas["SignInLinkOut"];

export function AddMember({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const project = useProject();
  return (
    <Modal
      closeOnClickOutside={false}
      opened={opened}
      onClose={onClose}
      title={`Add a member to ${project}`}
      size="lg"
    >
      <AddForm project={project} onDone={onClose} />
    </Modal>
  );
}

function AddForm({ project, onDone }: { project: string; onDone: () => void }) {
  const client = useQueryClient();
  const [user, setUser] = useState("");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const oidc = useQuery(signInMethodsQuery).data?.oidc;
  const add = useMutation({
    mutationFn: () => addMember(project, { user: user.trim(), role, email: email.trim() || null }),
    onSuccess: () => client.invalidateQueries({ queryKey: membersQuery(project).queryKey }),
  });
  if (add.data?.sign_in) return <TheLink user={add.data.user} link={add.data.sign_in} onDone={onDone} />;
  if (add.data)
    return (
      <Stack>
        <Text size="sm">
          {add.data.user} has an account already and is now {add.data.role} here too. They sign in as they
          always do.
        </Text>
        <Group justify="flex-end">
          <Button onClick={onDone}>Done</Button>
        </Group>
      </Stack>
    );
  return (
    <SendForm send={add} label="Add" onLeave={onDone}>
      <TextInput
        label="Name"
        description="Letters, digits, dots, dashes and underscores. They sign in with it."
        required
        maxLength={128}
        autoComplete="off"
        data-autofocus
        value={user}
        onChange={(event) => setUser(event.currentTarget.value)}
      />
      {oidc && (
        <TextInput
          label="E-mail"
          description={`A new account becomes theirs when they sign in with ${oidc} under this verified address.`}
          type="email"
          autoComplete="off"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
      )}
      <Radio.Group label="Role" value={role} onChange={(value) => setRole(value as Role)}>
        <Stack gap="xs" mt="xs">
          {ROLES.map((one) => (
            <Radio key={one.role} value={one.role} label={one.role} description={one.does} />
          ))}
        </Stack>
      </Radio.Group>
    </SendForm>
  );
}

interface LinkProperties {
  user: string | null;
  link: Link | null;
  pending: boolean;
  error: Error | null;
  onGo: () => void;
  onClose: () => void;
}

/** Asks, since the old ways in end with the new link; then shows it. */
export function LinkDialog({ user, link, pending, error, onGo, onClose }: LinkProperties) {
  if (user && link) {
    return (
      <Modal
        closeOnClickOutside={false}
        opened
        onClose={onClose}
        title={`Sign-in link for ${user}`}
        size="lg"
      >
        <TheLink user={user} link={link} onDone={onClose} />
      </Modal>
    );
  }
  return (
    <Confirm
      title={user && `Make a new sign-in link for ${user}?`}
      go="Create the link"
      pending={pending}
      error={error}
      onClose={onClose}
      onGo={onGo}
    >
      For someone who cannot sign in any more: their password is removed, and they are signed out everywhere
      until they open the link.
    </Confirm>
  );
}

function TheLink({ user, link, onDone }: { user: string; link: Link; onDone: () => void }) {
  const ends = new Date(link.expires_at).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });
  return (
    <ShownOnce label="Sign-in link" secret={window.location.origin + link.path} onDone={onDone}>
      <Text size="sm">
        Send it only to {user}: the first person to open it is signed in as {user}. It works once, until{" "}
        {ends}. Once inside they can set a password under Account.
      </Text>
    </ShownOnce>
  );
}
