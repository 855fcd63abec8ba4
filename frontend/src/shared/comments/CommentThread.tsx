import { ActionIcon, Group, Stack, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconPencil, IconTrash } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { Comment } from "../../api/comments";
import { SendForm } from "../forms/SendForm";
import { When } from "../When";
import { CommentInput } from "./CommentInput";

interface Properties {
  project: string;
  comments: Comment[];
  /** What they are about, such as `this row`. */
  about: string;
  mayWrite: boolean;
  add: (text: string) => Promise<unknown>;
  edit: (comment: string, text: string) => Promise<unknown>;
  remove: (comment: string) => Promise<unknown>;
  onChange: () => void;
}

/** What people wrote about a thing, the oldest first. */
export function CommentThread({ comments, mayWrite, about, ...rest }: Properties) {
  const { project, add, onChange } = rest;
  const [text, setText] = useState("");
  const send = useMutation({
    mutationFn: () => add(text.trim()),
    onSuccess: () => {
      setText("");
      onChange();
    },
  });
  if (!mayWrite && !comments.length) return null;
  return (
    <section aria-label="Comments">
      <Title order={3} size="h6" mb="xs">
        Comments
      </Title>
      <Stack gap="sm">
        {comments.map((comment) => (
          <Entry key={comment.id} comment={comment} mayWrite={mayWrite} {...rest} />
        ))}
        {mayWrite && (
          <SendForm send={send} label="Comment" disabled={!text.trim()}>
            <CommentInput project={project} label={`Comment on ${about}`} value={text} onChange={setText} />
          </SendForm>
        )}
      </Stack>
    </section>
  );
}

type EntryProperties = Pick<Properties, "project" | "mayWrite" | "edit" | "remove" | "onChange"> & {
  comment: Comment;
};

function Entry({ project, comment, mayWrite, edit, remove, onChange }: EntryProperties) {
  const [draft, setDraft] = useState<string | null>(null);
  const save = useMutation({
    mutationFn: () => edit(comment.id, (draft ?? "").trim()),
    onSuccess: () => {
      setDraft(null);
      onChange();
    },
  });
  const erase = useMutation({
    mutationFn: () => remove(comment.id),
    onSuccess: onChange,
    onError: (error) => notifications.show({ message: error.message, color: "red" }),
  });
  const author = nameOf(comment.actor);
  if (draft !== null)
    return (
      <SendForm send={save} label="Save" disabled={!draft.trim()} onLeave={() => setDraft(null)}>
        <CommentInput project={project} label="Edit the comment" value={draft} onChange={setDraft} />
      </SendForm>
    );
  return (
    <Group justify="space-between" wrap="nowrap" align="flex-start">
      <div style={{ minWidth: 0 }}>
        <Text size="xs" c="dimmed" component="div">
          {author}, <When at={comment.created_at} />
          {comment.edited_at && ", edited"}
        </Text>
        <div className="notes" dangerouslySetInnerHTML={{ __html: comment.html }} />
      </div>
      {mayWrite && (
        <Group gap={2} wrap="nowrap">
          {comment.mine && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label="Edit your comment"
              onClick={() => setDraft(comment.text)}
            >
              <IconPencil size={16} />
            </ActionIcon>
          )}
          {comment.deletable && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Delete the comment of ${author}`}
              onClick={() => erase.mutate()}
            >
              <IconTrash size={16} />
            </ActionIcon>
          )}
        </Group>
      )}
    </Group>
  );
}

/** An actor as people read it: a person by name alone. */
export function nameOf(actor: string): string {
  return actor.replace(/^user:/, "");
}
