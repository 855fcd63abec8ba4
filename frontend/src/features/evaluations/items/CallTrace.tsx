import { Alert, Drawer, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ItemVerdict, type JudgeCall, judgeCallQuery } from "../../../api/evaluation/items";
import { Facts, type Fact } from "../../../shared/Facts";
import { Loaded } from "../../../shared/Feedback";
import { count, seconds, short, signed } from "../../../shared/format/format";
import { Turns } from "../../../shared/text/Turns";
import { When } from "../../../shared/When";
import { verdictText } from "../verdictText";

interface Properties {
  project: string;
  evaluation: string;
  verdict: ItemVerdict;
  onClose: () => void;
}

/** The call of the endpoint behind a verdict: what was sent, what came back, and what it took. */
export function CallTrace({ project, evaluation, verdict, onClose }: Properties) {
  const query = useQuery(judgeCallQuery(project, evaluation, verdict.judge_id, verdict.id));
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="xl"
      title={
        <Text fw={600}>
          Call of {verdict.judge}, prompt {verdict.position + 1}
        </Text>
      }
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loaded query={query}>{(call) => <Call call={call} verdict={verdict} />}</Loaded>
    </Drawer>
  );
}

function Call({ call, verdict }: { call: JudgeCall; verdict: ItemVerdict }) {
  return (
    <Stack>
      <Facts facts={factsOf(call, verdict)} columns={3} />
      {call.detail && (
        <Alert color="orange" variant="light">
          {call.detail}
        </Alert>
      )}
      <Part title="What was sent">
        {call.messages ? (
          <Turns turns={call.messages} />
        ) : (
          <Text size="sm" c="dimmed">
            {call.no_messages}
          </Text>
        )}
      </Part>
      {call.answer !== null && (
        <Part title="What it answered">
          <pre className="text">{call.answer || "(empty)"}</pre>
        </Part>
      )}
      {call.logprobs && (
        <Part title="Log-probabilities of its first token">
          <pre className="text">{JSON.stringify(call.logprobs, null, 2)}</pre>
        </Part>
      )}
      {call.repeated && (
        <Part title="Asked again">
          <Text size="sm">
            {call.repeated.value === null ? call.repeated.status : signed(call.repeated.value)}
          </Text>
          {call.repeated.answer !== null && <pre className="text">{call.repeated.answer}</pre>}
        </Part>
      )}
    </Stack>
  );
}

function factsOf(call: JudgeCall, verdict: ItemVerdict): Fact[] {
  const facts: Fact[] = [
    ["Verdict", call.value === null ? call.status : verdictText(verdict)],
    ["Model", call.model, call.endpoint ? `endpoint ${call.endpoint}` : "its endpoint was deleted"],
  ];
  if (call.answered_at) {
    facts.push(
      ["Tokens", `${count(call.prompt_tokens)} in, ${count(call.completion_tokens)} out`],
      [
        "Cost",
        call.cost === null ? "–" : short(call.cost),
        call.cost === null ? "no prices, or no token counts" : "",
      ],
      ["Time", seconds(call.seconds), call.attempts === null ? undefined : `attempt ${count(call.attempts)}`],
      [
        "From the cache",
        call.cached ? "yes" : "no",
        call.cached ? `paid by ${call.paid_by ?? "a judge that was deleted"}` : undefined,
      ],
      ["Answered", <When key="at" at={call.answered_at} />],
      ["Ended by", call.finish_reason ?? "–"],
    );
  }
  if (call.max_tokens !== null)
    facts.push([
      "Sampling",
      `temperature ${signed(call.temperature, 1)}`,
      `at most ${count(call.max_tokens)} tokens`,
    ]);
  return facts;
}

function Part({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section aria-label={title}>
      <Title order={3} size="h6" mb={4}>
        {title}
      </Title>
      {children}
    </section>
  );
}
