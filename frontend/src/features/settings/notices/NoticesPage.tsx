import { Button, Card, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { changeRule, deleteRule, type NoticeRule, rulesQuery } from "../../../api/accounts/notices";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { Confirm } from "../../../shared/Confirm";
import { Deliveries } from "./Deliveries";
import { OwnersOnly } from "../OwnersOnly";
import { RuleCard } from "./RuleCard";
import { RuleForm } from "./RuleForm";

const route = getRouteApi("/p/$project/settings/notices");

export function NoticesPage() {
  return (
    <OwnersOnly what="Notices">
      <Notices />
    </OwnersOnly>
  );
}

function Notices() {
  const { project } = route.useParams();
  const { of } = route.useSearch();
  const client = useQueryClient();
  const rules = useQuery(rulesQuery(project));
  const [form, setForm] = useState<NoticeRule | "new" | null>(null);
  const [deleting, setDeleting] = useState<NoticeRule | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: rulesQuery(project).queryKey });
  const activate = useMutation({
    mutationFn: ({ rule, active }: { rule: NoticeRule; active: boolean }) =>
      changeRule(project, rule.id, { active }),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: (rule: NoticeRule) => deleteRule(project, rule.id),
    onSuccess: async () => {
      setDeleting(null);
      await refresh();
    },
  });
  const create = <Button onClick={() => setForm("new")}>Create a rule</Button>;
  const shown = rules.data?.find((one) => one.name === of);
  if (shown) return <Deliveries project={project} rule={shown} />;
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={620}>
          Each rule reports some events of {project} to a server by webhook, to a Slack channel, or to people
          by e-mail. If there is no answer, Steerboard tries again for about a day.
        </Text>
        {!!rules.data?.length && create}
      </Group>
      {activate.error && <Failure error={activate.error} />}
      <Loaded query={rules} rows={4}>
        {(found) =>
          found.length ? (
            <Stack gap="sm" role="list" aria-label="Notice rules">
              {found.map((rule) => (
                <Card withBorder key={rule.id} role="listitem" data-rule={rule.name}>
                  <RuleCard
                    project={project}
                    rule={rule}
                    onChange={() => setForm(rule)}
                    onActive={(active) => activate.mutate({ rule, active })}
                    onDelete={() => {
                      remove.reset();
                      setDeleting(rule);
                    }}
                  />
                </Card>
              ))}
            </Stack>
          ) : (
            <Empty title="No notice rules yet" action={create}>
              With one, your team, chat or CI hears when a pipeline ends or a run breaks a health rule.
            </Empty>
          )
        }
      </Loaded>
      <Modal
        opened={form !== null}
        closeOnClickOutside={false}
        onClose={() => setForm(null)}
        title={form === "new" || !form ? "Create a rule" : `Change ${form.name}`}
        size="lg"
      >
        {form && (
          <RuleForm project={project} rule={form === "new" ? null : form} onDone={() => setForm(null)} />
        )}
      </Modal>
      <Confirm
        title={deleting && `Delete ${deleting.name}?`}
        go="Delete"
        pending={remove.isPending}
        error={remove.error}
        onClose={() => setDeleting(null)}
        onGo={() => deleting && remove.mutate(deleting)}
      >
        All of its deliveries are deleted, including pending ones, and a webhook&apos;s secret. To send
        nothing for a while, switch it off instead.
      </Confirm>
    </Stack>
  );
}
