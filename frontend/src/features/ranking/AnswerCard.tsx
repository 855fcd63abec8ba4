import { Box, Group, Text } from "@mantine/core";
import { use, useEffect, useRef, type ReactNode } from "react";
import type { Task } from "../../api/evaluation/ranking";
import { Prose } from "./Prose";
import { FlaggedContext } from "./spans/context";
import { SpanList } from "./spans/SpanList";

interface Properties {
  answer: Task["answers"][number];
  /** Keys of other answers with the same text. */
  equal: readonly string[];
  followUps: string[];
  focused: boolean;
  onFocus: () => void;
  badge?: ReactNode;
  /** Below the text. */
  children?: ReactNode;
}

/** One answer, whole: a long one scrolls inside. */
export function AnswerCard({ answer, equal, followUps, focused, onFocus, badge, children }: Properties) {
  const card = useRef<HTMLElement>(null);
  const text = useRef<HTMLDivElement>(null);
  const begun = useRef(false);
  useEffect(() => {
    if (!focused) return;
    // A reviewer's page begins with what annotators submitted.
    const local = !begun.current && card.current?.closest("[data-local]");
    begun.current = true;
    if (local) return;
    card.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
    // The keys that scroll then scroll this answer; focus stays on a button or field.
    const active = document.activeElement;
    if (!active || active === document.body || active.closest(".rank-answers")) {
      text.current?.focus({ preventScroll: true });
    }
  }, [focused]);
  const { key } = answer;
  const { spans, pending, exact } = use(FlaggedContext);
  const mine = spans.filter((span) => span.key === key);
  const marking = pending?.key === key ? pending : null;
  useEffect(() => {
    if (marking) text.current?.querySelector("mark[data-pending]")?.scrollIntoView({ block: "nearest" });
  }, [marking]);
  return (
    <Box
      component="section"
      ref={card}
      className="rank-answer"
      aria-label={`Answer ${key}`}
      data-key={key}
      data-focused={focused || undefined}
      onPointerDown={onFocus}
    >
      <Group justify="space-between" wrap="nowrap" pl="sm" pr={6} className="rank-answer-head">
        <Group gap="xs" wrap="nowrap" miw={0}>
          <Text fw={700} style={{ whiteSpace: "nowrap" }}>
            {[key, ...equal].join(" = ")}
          </Text>
          {equal.length > 0 && (
            <Text size="xs" c="dimmed" truncate>
              identical, shown once
            </Text>
          )}
        </Group>
        {badge}
      </Group>
      <Box
        className="rank-answer-text"
        ref={text}
        tabIndex={0}
        onFocus={onFocus}
        aria-label={`Text of answer ${key}`}
        role="group"
      >
        {answer.turns.map((turn, at) => (
          <Box key={at} data-turn={at + 1}>
            {at > 0 && followUps[at - 1] !== undefined && (
              <Text size="sm" c="dimmed" my="xs" className="rank-follow-up">
                Then asked: {followUps[at - 1]}
              </Text>
            )}
            {turn.trim() ? (
              <Prose
                text={turn}
                exact={exact}
                spans={mine.filter((span) => (span.turn ?? 1) === at + 1)}
                pending={marking?.turn === at + 1 ? marking : null}
              />
            ) : (
              <Text c="dimmed" fs="italic" size="sm">
                An empty answer.
              </Text>
            )}
          </Box>
        ))}
      </Box>
      <SpanList answer={answer} />
      {children}
    </Box>
  );
}
