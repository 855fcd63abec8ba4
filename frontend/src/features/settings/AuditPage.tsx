import { Anchor, Autocomplete, Button, Group, SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { auditQuery, membersQuery, systemAuditQuery } from "../../api/accounts/accounts";
import type { Schemas } from "../../api/client";
import { sessionQuery } from "../../api/accounts/session";
import { Empty, Loaded } from "../../shared/Feedback";
import { When } from "../../shared/When";
import { factsOf } from "./auditDetails";
import { More } from "../../shared/More";
import { OwnersOnly } from "./OwnersOnly";

type Entry = Schemas["AuditOut"];

const route = getRouteApi("/p/$project/settings/audit");
/** A thing alone finds all that was done to such things. */
const THINGS = [
  "dataset",
  "member",
  "model",
  "pipeline",
  "project",
  "ranking",
  "rewards",
  "run",
  "sign_in_link",
  "token",
];
/** Facts of an entry before one asks for more. */
const SHOWN = 3;
const SIGNING = ["password", "session", "sign_in_link"];

export function AuditPage() {
  return (
    <OwnersOnly what="Audit logs">
      <Audit />
    </OwnersOnly>
  );
}

function Audit() {
  const { project } = route.useParams();
  const { outside: wanted, ...search } = route.useSearch();
  const navigate = route.useNavigate();
  const operator = useQuery(sessionQuery).data?.is_operator ?? false;
  // Who signs in concerns all projects, so only the operator sees it.
  const outside = wanted && operator;
  // The fields below keep what is typed; a link to a list resets them.
  const [asked, setAsked] = useState(0);
  const inside = useInfiniteQuery({ ...auditQuery(project, search), enabled: !outside });
  const signing = useInfiniteQuery({ ...systemAuditQuery(search), enabled: !!outside });
  const entries = outside ? signing : inside;
  const filtered = Boolean(search.actor ?? search.action);
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          {outside
            ? "Sign-ins, failed ones too, sign-outs, passwords and sign-in links of everyone here; the newest first."
            : `Every change in ${project}, the newest first.`}{" "}
          No one can edit or delete an entry.
          {!outside && !search.action && (
            <>
              {" "}
              Rankings have{" "}
              <Anchor
                component="button"
                size="sm"
                onClick={() => {
                  void navigate({ search: { action: "ranking" } }).then(() => setAsked(asked + 1));
                }}
              >
                a list of their own
              </Anchor>
              .
            </>
          )}
        </Text>
        {operator && (
          <SegmentedControl
            aria-label="Which log"
            value={outside ? "outside" : "project"}
            data={[
              { value: "project", label: "This project" },
              { value: "outside", label: "Signing in" },
            ]}
            onChange={(value) => void navigate({ search: value === "outside" ? { outside: true } : {} })}
          />
        )}
      </Group>
      <Filters key={`${outside} ${asked}`} />
      <Loaded query={entries} rows={10}>
        {(found) => {
          const items = found.pages.flatMap((page) => page.items);
          if (!items.length)
            return (
              <Empty title={filtered ? "No entry matches these filters" : "No changes yet"}>
                {filtered
                  ? "Filters match whole names: user:NAME or token:NAME, and a thing (run) or an action (run.cancel)."
                  : "Every change by a person or a token appears here."}
              </Empty>
            );
          return (
            <>
              <Table aria-label="Audit log, the newest first" style={{ tableLayout: "fixed" }}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th w={{ base: "100%", sm: 110 }}>
                      When<span className="phone-only">, who and what</span>
                    </Table.Th>
                    <Table.Th visibleFrom="sm" w="18%">
                      Who
                    </Table.Th>
                    <Table.Th visibleFrom="sm" w="18%">
                      What
                    </Table.Th>
                    <Table.Th visibleFrom="sm" w="20%">
                      Target
                    </Table.Th>
                    <Table.Th visibleFrom="sm">Detail</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {items.map((entry) => (
                    <Row key={entry.id} entry={entry} />
                  ))}
                </Table.Tbody>
              </Table>
              <More query={entries} />
            </>
          );
        }}
      </Loaded>
    </Stack>
  );
}

function Filters() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const members = useInfiniteQuery(membersQuery(project));
  const [actor, setActor] = useState(search.actor ?? "");
  const [action, setAction] = useState(search.action ?? "");
  const look = useDebouncedCallback((next: { actor: string; action: string }) => {
    void navigate({
      search: (old) => ({
        ...old,
        actor: next.actor.trim() || undefined,
        action: next.action.trim() || undefined,
      }),
      replace: true,
    });
  }, 400);
  const people = members.data?.pages.flatMap((page) => page.items.map((one) => `user:${one.user}`)) ?? [];
  return (
    <Group align="flex-end" gap="sm">
      <Autocomplete
        label="Who"
        placeholder="user:… or token:…"
        data={people}
        value={actor}
        maxLength={200}
        w={{ base: "100%", xs: 240 }}
        onChange={(value) => {
          setActor(value);
          look({ actor: value, action });
        }}
      />
      <Autocomplete
        label="What"
        placeholder={search.outside ? "session, or password.set" : "run, or run.cancel"}
        data={search.outside ? SIGNING : THINGS}
        value={action}
        maxLength={200}
        w={{ base: "100%", xs: 240 }}
        onChange={(value) => {
          setAction(value);
          look({ actor, action: value });
        }}
      />
      {(actor || action) && (
        <Button
          variant="subtle"
          onClick={() => {
            setActor("");
            setAction("");
            look({ actor: "", action: "" });
            look.flush();
          }}
        >
          Show all
        </Button>
      )}
    </Group>
  );
}

function Row({ entry }: { entry: Entry }) {
  // An id behind a name is for machines: it is in the row's title, and in the API.
  const target = entry.target.replace(/ [0-9a-f]{8}-[0-9a-f-]{27}$/, "");
  return (
    <Table.Tr data-action={entry.action} style={{ verticalAlign: "top" }}>
      <Table.Td>
        <When at={entry.at} />
        <Stack gap={2} hiddenFrom="sm" style={{ overflowWrap: "anywhere" }}>
          <Text size="sm">
            {entry.actor}: <b>{entry.action}</b>
          </Text>
          <Text size="sm" title={entry.target}>
            {target}
          </Text>
          <Detail details={entry.details} />
        </Stack>
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ overflowWrap: "anywhere" }}>
        {entry.actor}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ overflowWrap: "anywhere" }}>
        {entry.action}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ overflowWrap: "anywhere" }} title={entry.target}>
        {target}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Detail details={entry.details} />
      </Table.Td>
    </Table.Tr>
  );
}

function Detail({ details }: { details: Entry["details"] }) {
  const [whole, setWhole] = useState(false);
  const facts = factsOf(details);
  if (!facts.length)
    return (
      <Text size="xs" c="dimmed" visibleFrom="sm">
        –
      </Text>
    );
  const hidden = facts.length - SHOWN;
  return (
    <Stack gap={2} align="flex-start">
      {(whole ? facts : facts.slice(0, SHOWN)).map(({ name, value }) => (
        <Text key={name} size="xs" lineClamp={whole ? undefined : 2} style={{ overflowWrap: "anywhere" }}>
          <Text span inherit c="dimmed">
            {name}
          </Text>{" "}
          {value}
        </Text>
      ))}
      {hidden > 0 && (
        <Button
          size="compact-xs"
          variant="subtle"
          ml={-8}
          aria-expanded={whole}
          onClick={() => setWhole(!whole)}
        >
          {whole ? "Less" : `${hidden} more`}
        </Button>
      )}
    </Stack>
  );
}
