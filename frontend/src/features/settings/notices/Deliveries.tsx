import { Button, Code, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  deliveriesQuery,
  type Delivery,
  redeliver,
  type NoticeRule,
  rulesQuery,
} from "../../../api/accounts/notices";
import { useNow } from "../../../shared/format/clock";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { seconds } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { When } from "../../../shared/When";
import { DeliveryState } from "./DeliveryState";
import { More } from "../../../shared/More";

export function Deliveries({ project, rule }: { project: string; rule: NoticeRule }) {
  const client = useQueryClient();
  const deliveries = useInfiniteQuery(deliveriesQuery(project, rule.id));
  const again = useMutation({
    mutationFn: (delivery: string) => redeliver(project, rule.id, delivery),
    onSettled: () => client.invalidateQueries({ queryKey: rulesQuery(project).queryKey }),
  });
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={2} size="h4" style={{ overflowWrap: "anywhere" }}>
          Deliveries of {rule.name}
        </Title>
        <Link to="/p/$project/settings/notices" params={{ project }} search={{}} size="sm">
          All rules
        </Link>
      </Group>
      {again.error && <Failure error={again.error} />}
      <Loaded query={deliveries} rows={5}>
        {(found) => {
          const items = found.pages.flatMap((page) => page.items);
          if (!items.length)
            return (
              <Empty title="Nothing has been sent yet">
                The first one follows the next {rule.events.join(" or ")}. A test shows up here too.
              </Empty>
            );
          return (
            <>
              <Table.ScrollContainer minWidth={300}>
                <Table aria-label={`Deliveries of ${rule.name}, the newest first`}>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Event</Table.Th>
                      <Table.Th>State</Table.Th>
                      <Table.Th ta="right" visibleFrom="sm">
                        Attempts
                      </Table.Th>
                      <Table.Th visibleFrom="sm">Last error</Table.Th>
                      <Table.Th visibleFrom="sm">Created</Table.Th>
                      <Table.Th ta="right">Actions</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {items.map((delivery) => (
                      <Row
                        key={delivery.id}
                        delivery={delivery}
                        busy={again.isPending && again.variables === delivery.id}
                        onAgain={() => again.mutate(delivery.id)}
                      />
                    ))}
                  </Table.Tbody>
                </Table>
              </Table.ScrollContainer>
              <More query={deliveries} />
            </>
          );
        }}
      </Loaded>
    </Stack>
  );
}

function Row({ delivery, busy, onAgain }: { delivery: Delivery; busy: boolean; onAgain: () => void }) {
  const now = useNow();
  const [open, setOpen] = useState(false);
  const next = delivery.next_attempt_at
    ? Math.max(0, (Date.parse(delivery.next_attempt_at) - now) / 1000)
    : null;
  return (
    <>
      <Table.Tr data-delivery={delivery.event}>
        <Table.Td style={{ overflowWrap: "anywhere" }}>
          {delivery.event}
          <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
            <When at={delivery.created_at} />
            {delivery.last_error && `: ${delivery.last_error}`}
          </Text>
        </Table.Td>
        <Table.Td>
          <DeliveryState delivery={delivery} />
          {next !== null && (
            <Text size="xs" c="dimmed">
              {next ? `next try in ${seconds(next)}` : "next try any moment"}
            </Text>
          )}
        </Table.Td>
        <Table.Td ta="right" visibleFrom="sm">
          {delivery.attempts}
        </Table.Td>
        <Table.Td maw={340} visibleFrom="sm" style={{ overflowWrap: "anywhere" }}>
          {delivery.last_error ?? "–"}
        </Table.Td>
        <Table.Td visibleFrom="sm">
          <When at={delivery.created_at} />
        </Table.Td>
        <Table.Td>
          <Group gap={6} justify="flex-end">
            <Button size="xs" variant="subtle" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "Hide" : "Payload"}
            </Button>
            <Button size="xs" variant="default" loading={busy} onClick={onAgain}>
              Redeliver
            </Button>
          </Group>
        </Table.Td>
      </Table.Tr>
      {open && (
        <Table.Tr>
          <Table.Td colSpan={6}>
            <Code block tabIndex={0} aria-label={`Payload of ${delivery.event}`}>
              {JSON.stringify(delivery.payload, null, 2)}
            </Code>
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}
