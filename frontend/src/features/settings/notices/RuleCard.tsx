import { Badge, Button, Code, Group, Stack, Switch, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { testRule, type NoticeRule, rulesQuery } from "../../../api/accounts/notices";
import { Failure } from "../../../shared/Feedback";
import { Link } from "../../../shared/links";
import { When } from "../../../shared/When";
import { CHANNELS } from "./channels";
import { DeliveryState } from "./DeliveryState";
import { ScheduleText } from "./ScheduleText";
import type { CardActions } from "../ManagedList";

interface Properties extends CardActions {
  project: string;
  rule: NoticeRule;
}

export function RuleCard({ project, rule, onChange, onActive, onDelete }: Properties) {
  const client = useQueryClient();
  const test = useMutation({
    mutationFn: () => testRule(project, rule.id),
    onSettled: () => client.invalidateQueries({ queryKey: rulesQuery(project).queryKey }),
  });
  const last = rule.last_delivery;
  return (
    <Stack gap="xs">
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Title order={2} size="h5" style={{ overflowWrap: "anywhere" }}>
            {rule.name}
          </Title>
          <Group gap="xs">
            <Badge variant="outline" miw="max-content">
              {CHANNELS[rule.channel]}
            </Badge>
            <Code style={{ overflowWrap: "anywhere" }}>{rule.url ?? rule.recipients.join(", ")}</Code>
          </Group>
          <ScheduleText schedule={rule.schedule} />
        </div>
        <Switch
          label="Active"
          aria-label={`${rule.name} is active`}
          checked={rule.active}
          onChange={(event) => onActive(event.currentTarget.checked)}
        />
      </Group>
      <Group gap={4}>
        {rule.events.map((event) => (
          <Badge key={event} color="gray" miw="max-content">
            {event}
          </Badge>
        ))}
      </Group>
      <Text size="sm" component="div">
        {last ? (
          <Group gap="xs">
            Last delivery: {last.event} <When at={last.created_at} /> <DeliveryState delivery={last} />
          </Group>
        ) : (
          "Nothing has been sent yet."
        )}
        {last?.state !== "delivered" && last?.last_error && (
          <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
            {last.last_error}
          </Text>
        )}
      </Text>
      {test.error && <Failure error={test.error} />}
      {test.data && (
        <Text size="sm" role="status">
          {test.data.state === "delivered"
            ? `The test arrived: the receiver answered ${test.data.last_status}.`
            : `The test did not arrive: ${test.data.last_error ?? "no one answered"}`}
        </Text>
      )}
      <Group gap="xs">
        <Button
          size="xs"
          variant="default"
          loading={test.isPending}
          onClick={() => test.mutate()}
          aria-label={`Send a test to ${rule.name}`}
        >
          Send a test
        </Button>
        <Button size="xs" variant="default" onClick={onChange} aria-label={`Change ${rule.name}`}>
          Change
        </Button>
        <Button size="xs" variant="light" color="red" onClick={onDelete} aria-label={`Delete ${rule.name}`}>
          Delete
        </Button>
        <Link
          size="sm"
          to="/p/$project/settings/notices"
          params={{ project }}
          search={{ of: rule.name }}
          aria-label={`Deliveries of ${rule.name}`}
        >
          Deliveries
        </Link>
      </Group>
    </Stack>
  );
}
