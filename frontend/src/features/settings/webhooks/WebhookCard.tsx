import { Badge, Button, Code, Group, Stack, Switch, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { testWebhook, type Webhook, webhooksQuery } from "../../../api/accounts/webhooks";
import { Failure } from "../../../shared/Feedback";
import { Link } from "../../../shared/links";
import { When } from "../../../shared/When";
import { DeliveryState } from "./DeliveryState";

interface Properties {
  project: string;
  webhook: Webhook;
  onChange: () => void;
  onActive: (active: boolean) => void;
  onDelete: () => void;
}

export function WebhookCard({ project, webhook, onChange, onActive, onDelete }: Properties) {
  const client = useQueryClient();
  const test = useMutation({
    mutationFn: () => testWebhook(project, webhook.id),
    onSettled: () => client.invalidateQueries({ queryKey: webhooksQuery(project).queryKey }),
  });
  const last = webhook.last_delivery;
  return (
    <Stack gap="xs">
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Title order={2} size="h5" style={{ overflowWrap: "anywhere" }}>
            {webhook.name}
          </Title>
          <Code style={{ overflowWrap: "anywhere" }}>{webhook.url}</Code>
        </div>
        <Switch
          label="Active"
          aria-label={`${webhook.name} is active`}
          checked={webhook.active}
          onChange={(event) => onActive(event.currentTarget.checked)}
        />
      </Group>
      <Group gap={4}>
        {webhook.events.map((event) => (
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
          aria-label={`Send a test to ${webhook.name}`}
        >
          Send a test
        </Button>
        <Button size="xs" variant="default" onClick={onChange} aria-label={`Change ${webhook.name}`}>
          Change
        </Button>
        <Button
          size="xs"
          variant="light"
          color="red"
          onClick={onDelete}
          aria-label={`Delete ${webhook.name}`}
        >
          Delete
        </Button>
        <Link
          size="sm"
          to="/p/$project/settings/webhooks"
          params={{ project }}
          search={{ of: webhook.name }}
          aria-label={`Deliveries of ${webhook.name}`}
        >
          Deliveries
        </Link>
      </Group>
    </Stack>
  );
}
