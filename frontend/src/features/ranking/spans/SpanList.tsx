import { ActionIcon, Badge, Text } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { use } from "react";
import type { Task } from "../../../api/evaluation/ranking";
import { FlaggedContext } from "./context";
import { quoteOf } from "./passages";

/** The flags of one answer, below its text. */
export function SpanList({ answer }: { answer: Task["answers"][number] }) {
  const { spans, remove } = use(FlaggedContext);
  const mine = spans.filter(({ key }) => key === answer.key);
  if (!mine.length) return null;
  return (
    <ul className="rank-spans" aria-label={`Flags of answer ${answer.key}`}>
      {mine.map((span) => {
        const text = quoteOf([answer], span);
        return (
          <li key={`${span.turn} ${span.start} ${span.end} ${span.label}`}>
            <Badge color="orange" variant="light" className="state-badge">
              {span.label}
            </Badge>
            <Text size="xs" lineClamp={1} className="rank-span-text">
              “{text}”{span.note && ` ${span.note}`}
            </Text>
            {remove && (
              <ActionIcon
                size="sm"
                variant="subtle"
                color="gray"
                aria-label={`Remove the flag ${span.label} of “${text.slice(0, 60)}”`}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => remove(span)}
              >
                <IconX size={14} />
              </ActionIcon>
            )}
          </li>
        );
      })}
    </ul>
  );
}
