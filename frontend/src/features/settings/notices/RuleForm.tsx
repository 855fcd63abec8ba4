import {
  Checkbox,
  Code,
  Input,
  SegmentedControl,
  SimpleGrid,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  changeRule,
  createRule,
  EVENTS,
  EVENT_WORDS,
  type NoticeEvent,
  type NoticeRule,
  rulesQuery,
} from "../../../api/accounts/notices";
import { SendForm } from "../../../shared/forms/SendForm";
import { ShownOnce } from "../../../shared/text/ShownOnce";
import { CHANNELS } from "./channels";
import { newSchedule } from "./schedule";
import { ScheduleFields } from "./ScheduleFields";

type Channel = NoticeRule["channel"];

/** Makes a notice rule, or changes `rule`. */
export function RuleForm({
  project,
  rule,
  onDone,
}: {
  project: string;
  rule: NoticeRule | null;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const [name, setName] = useState(rule?.name ?? "");
  const [channel, setChannel] = useState<Channel>(rule?.channel ?? "webhook");
  // Slack's address is shown cut, so it is only sent when it is typed again.
  const [url, setUrl] = useState(rule?.channel === "webhook" ? (rule.url ?? "") : "");
  const [recipients, setRecipients] = useState<string[]>(rule?.recipients ?? []);
  const [schedule, setSchedule] = useState(rule?.schedule ?? newSchedule());
  const [events, setEvents] = useState<string[]>(
    rule?.events ?? ["run.failed", "run.health", "pipeline.succeeded", "pipeline.failed"],
  );
  const byMail = channel === "email";
  const receiver = {
    ...(byMail ? { recipients } : url.trim() ? { url: url.trim() } : {}),
    schedule: channel === "webhook" ? newSchedule() : schedule,
    events: events as NoticeEvent[],
  };
  const complete =
    events.length > 0 && (byMail ? recipients.length > 0 : url.trim() !== "" || rule?.channel === "slack");
  const save = useMutation({
    mutationFn: async () => {
      if (!rule) return createRule(project, { name: name.trim(), channel, recipients: [], ...receiver });
      await changeRule(project, rule.id, receiver);
      return null;
    },
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: rulesQuery(project).queryKey });
      if (!made?.secret) onDone();
    },
  });
  if (save.data?.secret) {
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
    <SendForm
      send={save}
      label={rule ? "Save" : "Create"}
      disabled={!complete || (!rule && !name.trim())}
      onLeave={onDone}
    >
      {!rule && (
        <>
          <TextInput
            label="Name"
            required
            maxLength={128}
            autoComplete="off"
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Input.Wrapper label="By" labelElement="div">
            <SegmentedControl
              fullWidth
              aria-label="By"
              data={Object.entries(CHANNELS).map(([value, label]) => ({ value, label }))}
              value={channel}
              onChange={(value) => setChannel(value as Channel)}
            />
          </Input.Wrapper>
        </>
      )}
      {byMail ? (
        <TagsInput
          label="Recipients"
          description="E-mail addresses; Enter adds one. They do not see each other."
          required
          maxTags={20}
          splitChars={[",", " ", ";"]}
          acceptValueOnBlur
          value={recipients}
          onChange={setRecipients}
        />
      ) : (
        <TextInput
          label="URL"
          description={DESCRIPTIONS[channel]}
          placeholder={
            channel === "slack" ? "https://hooks.slack.com/services/…" : "https://ci.example.com/steerboard"
          }
          required={rule?.channel !== "slack"}
          type="url"
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
      )}
      {channel !== "webhook" && <ScheduleFields value={schedule} onChange={setSchedule} />}
      <Checkbox.Group label="Events" value={events} onChange={setEvents}>
        <Stack gap="xs" mt="xs">
          {EVENTS.map(({ about, events: some }) => (
            <div key={about}>
              <Text size="xs" c="dimmed" mb={4}>
                {about}
              </Text>
              <SimpleGrid cols={{ base: 1, xs: 3 }} spacing={6}>
                {some.map((event) => (
                  <Checkbox key={event} value={event} label={event} description={EVENT_WORDS[event]} />
                ))}
              </SimpleGrid>
            </div>
          ))}
        </Stack>
      </Checkbox.Group>
    </SendForm>
  );
}

const DESCRIPTIONS: Record<"webhook" | "slack", string> = {
  webhook: "It receives a POST with JSON. Private addresses are refused unless the operator allows them.",
  slack: "The channel's incoming webhook, from the settings of your Slack app. It is stored sealed.",
};
