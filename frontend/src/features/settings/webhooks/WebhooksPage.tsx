import { Button, Card, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { changeWebhook, deleteWebhook, type Webhook, webhooksQuery } from "../../../api/accounts/webhooks";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { Confirm } from "../../../shared/Confirm";
import { Deliveries } from "./Deliveries";
import { OwnersOnly } from "../OwnersOnly";
import { WebhookCard } from "./WebhookCard";
import { WebhookForm } from "./WebhookForm";

const route = getRouteApi("/p/$project/settings/webhooks");

export function WebhooksPage() {
  return (
    <OwnersOnly what="Webhooks">
      <Webhooks />
    </OwnersOnly>
  );
}

function Webhooks() {
  const { project } = route.useParams();
  const { of } = route.useSearch();
  const client = useQueryClient();
  const webhooks = useQuery(webhooksQuery(project));
  const [form, setForm] = useState<Webhook | "new" | null>(null);
  const [deleting, setDeleting] = useState<Webhook | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: webhooksQuery(project).queryKey });
  const activate = useMutation({
    mutationFn: ({ webhook, active }: { webhook: Webhook; active: boolean }) =>
      changeWebhook(project, webhook.id, { active }),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: (webhook: Webhook) => deleteWebhook(project, webhook.id),
    onSuccess: async () => {
      setDeleting(null);
      await refresh();
    },
  });
  const create = <Button onClick={() => setForm("new")}>Create a webhook</Button>;
  const shown = webhooks.data?.find((one) => one.name === of);
  if (shown) return <Deliveries project={project} webhook={shown} />;
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          Steerboard calls these when a run or pipeline of {project} ends, and tries again for a while where
          no one answers.
        </Text>
        {!!webhooks.data?.length && create}
      </Group>
      {activate.error && <Failure error={activate.error} />}
      <Loaded query={webhooks} rows={4}>
        {(found) =>
          found.length ? (
            <Stack gap="sm" role="list" aria-label="Webhooks">
              {found.map((webhook) => (
                <Card withBorder key={webhook.id} role="listitem" data-webhook={webhook.name}>
                  <WebhookCard
                    project={project}
                    webhook={webhook}
                    onChange={() => setForm(webhook)}
                    onActive={(active) => activate.mutate({ webhook, active })}
                    onDelete={() => {
                      remove.reset();
                      setDeleting(webhook);
                    }}
                  />
                </Card>
              ))}
            </Stack>
          ) : (
            <Empty title="No webhooks yet" action={create}>
              With one, your CI or chat is notified when a pipeline ends.
            </Empty>
          )
        }
      </Loaded>
      <Modal
        opened={form !== null}
        closeOnClickOutside={false}
        onClose={() => setForm(null)}
        title={form === "new" || !form ? "Create a webhook" : `Change ${form.name}`}
        size="lg"
      >
        {form && (
          <WebhookForm
            project={project}
            webhook={form === "new" ? null : form}
            onDone={() => setForm(null)}
          />
        )}
      </Modal>
      <Confirm
        title={deleting && `Delete ${deleting.name}?`}
        keep="Keep it"
        go="Delete"
        pending={remove.isPending}
        error={remove.error}
        onClose={() => setDeleting(null)}
        onGo={() => deleting && remove.mutate(deleting)}
      >
        Its secret and all deliveries, including pending ones, are deleted. To stop the calls for a while,
        switch it off instead.
      </Confirm>
    </Stack>
  );
}
