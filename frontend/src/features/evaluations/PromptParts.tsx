import { Button, Group, Pagination, Stack, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../../api/client";
import type { EvaluationPrompt } from "../../api/evaluation/evaluations";
import { Asked } from "../../shared/AttributeBadges";
import type { Condition } from "../../shared/forms/condition";
import { counted, signed } from "../../shared/format/format";
import { AnswerText } from "../../shared/text/AnswerText";
import type { TextSpan } from "../../shared/text/spans";
import "./evaluations.css";

type Response = Schemas["ResponseOut"];

/** The conversation that is answered, with its later turns. */
export function PromptText({ prompt }: { prompt: EvaluationPrompt }) {
  const plain = prompt.messages.length === 1 && !prompt.follow_ups.length;
  if (plain) {
    return (
      <pre className="text" style={{ fontWeight: 600 }}>
        {prompt.messages[0]?.content}
      </pre>
    );
  }
  return (
    <Stack gap={4}>
      {prompt.messages.map((turn, at) => (
        <div key={at}>
          <Text size="xs" c="dimmed">
            {turn.role}
          </Text>
          <pre className="text" style={{ fontWeight: 600 }}>
            {turn.content}
          </pre>
        </div>
      ))}
      {prompt.follow_ups.map((text, at) => (
        <div key={`follow-up ${at}`}>
          <Text size="xs" c="dimmed">
            then, turn {at + 2}
          </Text>
          <pre className="text" style={{ fontWeight: 600 }}>
            {text}
          </pre>
        </div>
      ))}
    </Stack>
  );
}

/** Answers that are known to be right, folded. */
export function PromptReference({ prompt }: { prompt: EvaluationPrompt }) {
  if (!prompt.reference?.some(Boolean)) return null;
  return (
    <details>
      <summary className="evaluation-summary">Reference answer</summary>
      {prompt.reference.map((text, at) => (
        <pre key={at} className="text">
          {text}
        </pre>
      ))}
    </details>
  );
}

type FlaggedSpan = TextSpan & { turn: number };

interface AnswerProperties {
  name: string;
  asked: Condition | null;
  responses: Response[];
  /** Flagged passages of its first sample. */
  spans?: readonly FlaggedSpan[];
  /** Opens the trace of a sample. */
  onTrace?: (sample: number) => void;
  /** What is known of it, below its text. */
  children?: ReactNode;
}

/** What one entrant answered, one of its samples at a time. */
export function PromptAnswer({ name, asked, responses, spans, onTrace, children }: AnswerProperties) {
  const [page, setPage] = useState(1);
  const shown = responses[Math.min(page, responses.length) - 1];
  const flagged = shown === responses[0] ? (spans ?? []) : [];
  return (
    <section className="evaluation-answer" aria-label={`Answer of ${name}`}>
      <Group justify="space-between" gap={6} mb={4}>
        <Text size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
          {name}
        </Text>
        {responses.length > 1 && (
          <Pagination
            size="xs"
            siblings={0}
            boundaries={0}
            total={responses.length}
            value={page}
            onChange={setPage}
            getControlProps={(control) => ({ "aria-label": `${control} answer of ${name}` })}
          />
        )}
      </Group>
      <Asked condition={asked} />
      {shown ? (
        <>
          <div className="evaluation-text" tabIndex={0} role="group" aria-label={`Text of ${name}`}>
            {shown.turns.map((text, at) => (
              <div key={at}>
                {shown.turns.length > 1 && (
                  <Text size="xs" c="dimmed">
                    turn {at + 1}
                  </Text>
                )}
                {text ? (
                  <AnswerText text={text} spans={flagged.filter((span) => span.turn === at + 1)} />
                ) : (
                  <pre className="text">(empty)</pre>
                )}
              </div>
            ))}
          </div>
          <Group justify="space-between" wrap="nowrap" gap="xs" mt={4}>
            <Text size="xs" c="dimmed">
              {factsOf(shown)}
            </Text>
            {onTrace && (
              <Button
                size="compact-xs"
                variant="subtle"
                aria-label={`Trace of ${name}`}
                style={{ flexShrink: 0 }}
                onClick={() => onTrace(shown.sample)}
              >
                Trace
              </Button>
            )}
          </Group>
        </>
      ) : (
        <Text size="sm" c="dimmed">
          No answer yet.
        </Text>
      )}
      {children}
    </section>
  );
}

function factsOf(response: Response): string {
  const tokens = response.tokens?.reduce((sum, one) => sum + one, 0);
  const cut = response.finished?.some((one) => !one);
  return [
    ...Object.entries(response.rewards).map(([model, value]) => `${model} ${signed(value)}`),
    tokens === undefined ? "" : counted(tokens, "token"),
    cut ? "cut by the token limit" : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
