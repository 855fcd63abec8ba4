import { Checkbox, Code, SimpleGrid, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import {
  changeWebhook,
  createWebhook,
  EVENTS,
  type Webhook,
  type WebhookEvent,
  webhooksQuery,
} from "../../../api/accounts/webhooks";
import { SendForm } from "../../../shared/forms/SendForm";
import { ShownOnce } from "../../../shared/text/ShownOnce";

/** Makes a webhook, or changes `webhook`. */
export function WebhookForm({
  project,
  webhook,
  onDone,
}: {
  project: string;
  webhook: Webhook | null;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const [name, setName] = useState(webhook?.name ?? "");
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [events, setEvents] = useState<string[]>(
    webhook?.events ?? ["run.failed", "pipeline.succeeded", "pipeline.failed"],
  );
  const refresh = () => client.invalidateQueries({ queryKey: webhooksQuery(project).queryKey });
  const save = useMutation({
    mutationFn: async (): Promise<Schemas["WebhookCreated"] | null> => {
      const body = { url: url.trim(), events: events as WebhookEvent[] };
      if (webhook) {
        await changeWebhook(project, webhook.id, body);
        return null;
      }
      return createWebhook(project, { name: name.trim(), ...body });
    },
    onSuccess: async (made) => {
      await refresh();
      if (!made) onDone();
    },
  });
  if (save.data) {
    return (
      <ShownOnce label="Secret" secret={save.data.secret} onDone={onDone}>
        <Text size="sm">
          The receiver needs it to tell our calls from others&apos;: each carries <Code>webhook-id</Code>,{" "}
          <Code>webhook-timestamp</Code> and <Code>webhook-signature</Code>, by the Standard Webhooks scheme,
          for which there are libraries in most languages. Then send it a test.
        </Text>
      </ShownOnce>
    );
  }
  return (
    <SendForm send={save} label={webhook ? "Save" : "Create"} disabled={!events.length} onLeave={onDone}>
      {!webhook && (
        <TextInput
          label="Name"
          required
          maxLength={128}
          autoComplete="off"
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      )}
      <TextInput
        label="URL"
        description="It gets a POST with JSON. Private addresses are refused unless the operator allows them."
        placeholder="https://ci.example.com/steerboard"
        required
        type="url"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
      />
      <Checkbox.Group label="Events" value={events} onChange={setEvents}>
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" mt="xs">
          {EVENTS.map((event) => (
            <Checkbox key={event} value={event} label={event} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
    </SendForm>
  );
}
