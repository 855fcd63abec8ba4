import { Button, Group, Textarea } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { membersQuery } from "../../api/accounts/accounts";
import { begunMention, candidates, completed } from "./mention";

interface Properties {
  project: string;
  label: string;
  value: string;
  onChange: (text: string) => void;
}

/** A text in which an @ offers the members of the project. */
export function CommentInput({ project, label, value, onChange }: Properties) {
  const [caret, setCaret] = useState(0);
  const area = useRef<HTMLTextAreaElement>(null);
  const begun = begunMention(value, caret);
  const members = useInfiniteQuery({ ...membersQuery(project), enabled: begun !== null });
  const names = members.data?.pages.flatMap((page) => page.items.map((member) => member.user)) ?? [];
  const offered = begun === null ? [] : candidates(names, begun);
  const take = (name: string) => {
    const next = completed(value, caret, name);
    onChange(next.text);
    setCaret(next.caret);
    area.current?.focus();
    // After React has written the text.
    requestAnimationFrame(() => area.current?.setSelectionRange(next.caret, next.caret));
  };
  return (
    <div>
      <Textarea
        ref={area}
        aria-label={label}
        placeholder={`${label}. Markdown; @name tells a member.`}
        autosize
        maxRows={12}
        maxLength={10_000}
        value={value}
        onChange={(event) => {
          onChange(event.currentTarget.value);
          setCaret(event.currentTarget.selectionStart);
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onKeyDown={(event) => {
          if (event.key !== "Tab" || event.shiftKey || !begun || !offered.length) return;
          event.preventDefault();
          take(offered[0]!);
        }}
      />
      {offered.length > 0 && (
        <Group gap={4} mt={4} role="group" aria-label="Members to mention">
          {offered.map((name) => (
            <Button key={name} size="compact-xs" variant="default" onClick={() => take(name)}>
              @{name}
            </Button>
          ))}
        </Group>
      )}
    </div>
  );
}
