import { Box, Group, Text, UnstyledButton } from "@mantine/core";
import { useEffect, useRef } from "react";
import type { Task } from "../../api/evaluation/ranking";
import { Prose } from "./Prose";

interface Properties {
  answer: Task["answers"][number];
  followUps: string[];
  level: number | undefined;
  focused: boolean;
  onFocus: () => void;
  /** The next rank, or none again. */
  onToggle: () => void;
}

/** One answer, whole: a long one scrolls inside. */
export function AnswerCard({ answer, followUps, level, focused, onFocus, onToggle }: Properties) {
  const card = useRef<HTMLElement>(null);
  const text = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!focused) return;
    card.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
    // The keys that scroll then scroll this answer; focus stays on a button or field.
    const active = document.activeElement;
    if (!active || active === document.body || active.closest(".rank-answers")) {
      text.current?.focus({ preventScroll: true });
    }
  }, [focused]);
  const { key } = answer;
  return (
    <Box
      component="section"
      ref={card}
      className="rank-answer"
      aria-label={`Answer ${key}`}
      data-focused={focused || undefined}
      onPointerDown={onFocus}
    >
      <Group justify="space-between" pl="sm" pr={6} className="rank-answer-head">
        <Text fw={700}>{key}</Text>
        <UnstyledButton
          className="rank-badge"
          data-ranked={level !== undefined || undefined}
          aria-label={
            level === undefined ? `Give ${key} the next rank` : `${key} has rank ${level}: take it away`
          }
          onMouseDown={(event) => event.preventDefault()}
          onClick={onToggle}
        >
          {level ?? "–"}
        </UnstyledButton>
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
          <Box key={at}>
            {at > 0 && followUps[at - 1] !== undefined && (
              <Text size="sm" c="dimmed" my="xs" className="rank-follow-up">
                Then asked: {followUps[at - 1]}
              </Text>
            )}
            {turn.trim() ? (
              <Prose text={turn} />
            ) : (
              <Text c="dimmed" fs="italic" size="sm">
                An empty answer.
              </Text>
            )}
          </Box>
        ))}
      </Box>
    </Box>
  );
}
