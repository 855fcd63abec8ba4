import { Button, CopyButton, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import {
  type NewShareLink,
  revokeShareLink,
  type Shared,
  type ShareLink,
  shareLinksQuery,
} from "../../api/shareLinks";
import { Failure, Loaded } from "../Feedback";
import { When } from "../When";

const LIVES = [
  { value: "1", label: "1 day" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
];

interface Properties {
  project: string;
  shared: Shared;
  create: (days: number) => Promise<NewShareLink>;
  /** What a link shows to everyone who has it. */
  children: ReactNode;
}

/** Makes links for people without an account, and revokes them. */
export function ShareLinks({ project, shared, create: createLink, children }: Properties) {
  const client = useQueryClient();
  const query = shareLinksQuery(project, shared);
  const links = useQuery(query);
  const [days, setDays] = useState("7");
  const renew = () => client.invalidateQueries({ queryKey: query.queryKey });
  const create = useMutation({
    mutationFn: () => createLink(Number(days)),
    onSuccess: renew,
  });
  const revoke = useMutation({
    mutationFn: (link: string) => revokeShareLink(project, link),
    onSuccess: async (_, link) => {
      if (create.data?.id === link) create.reset();
      await renew();
    },
  });
  const error = create.error ?? revoke.error;
  return (
    <Stack>
      <Text size="sm">{children}</Text>
      <Group align="flex-end" gap="xs">
        <Select
          label="Valid for"
          data={LIVES}
          value={days}
          allowDeselect={false}
          onChange={(value) => setDays(value ?? "7")}
          w={160}
        />
        <Button loading={create.isPending} onClick={() => create.mutate()}>
          Create a link
        </Button>
      </Group>
      {create.data && <Made address={new URL(create.data.path, window.location.origin).href} />}
      {error && <Failure error={error} />}
      <Loaded query={links}>
        {(active) =>
          active.length ? (
            <Stack gap="xs" role="list" aria-label="Active links">
              {active.map((link) => (
                <Row
                  key={link.id}
                  link={link}
                  titled={shared.kind !== "report"}
                  pending={revoke.isPending && revoke.variables === link.id}
                  onRevoke={() => revoke.mutate(link.id)}
                />
              ))}
            </Stack>
          ) : (
            <Text size="sm" c="dimmed">
              There are no active links.
            </Text>
          )
        }
      </Loaded>
    </Stack>
  );
}

function Made({ address }: { address: string }) {
  return (
    <div>
      <Group align="flex-end" gap="xs" wrap="nowrap">
        <TextInput
          label="Link"
          readOnly
          value={address}
          flex={1}
          onFocus={(event) => event.currentTarget.select()}
        />
        <CopyButton value={address} timeout={3000}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy} miw={90}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Text size="xs" c="dimmed" mt={4}>
        Copy it now: it is not shown again.
      </Text>
    </div>
  );
}

interface RowProperties {
  link: ShareLink;
  /** Whether its title is shown. */
  titled: boolean;
  pending: boolean;
  onRevoke: () => void;
}

function Row({ link, titled, pending, onRevoke }: RowProperties) {
  const until = new Date(link.expires_at).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });
  return (
    <Group justify="space-between" wrap="nowrap" role="listitem">
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {titled && (
          <Text span display="block" fw={500}>
            {link.title}
          </Text>
        )}
        By {link.created_by.replace(/^(user|token):/, "")}, created <When at={link.created_at} />, valid until{" "}
        {until}
      </Text>
      <Button size="xs" variant="default" flex="none" loading={pending} onClick={onRevoke}>
        Revoke
      </Button>
    </Group>
  );
}
