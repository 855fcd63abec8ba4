import { ActionIcon, Group, Stack, Text, Textarea, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconTrash } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { commentRow, deleteComment, type RowReview } from "../../../api/datasets/review";
import { SendForm } from "../../../shared/forms/SendForm";
import { When } from "../../../shared/When";

interface Properties {
  path: { project: string; dataset: string; number: number };
  comments: RowReview["comments"];
  mayWrite: boolean;
  onChange: () => void;
}

/** What people wrote about a row, the oldest first. New versions keep it. */
export function RowComments({ path, comments, mayWrite, onChange }: Properties) {
  const [text, setText] = useState("");
  const send = useMutation({
    mutationFn: () => commentRow(path, text.trim()),
    onSuccess: () => {
      setText("");
      onChange();
    },
  });
  const remove = useMutation({
    mutationFn: (comment: string) => deleteComment(path.project, path.dataset, comment),
    onSuccess: onChange,
    onError: (error) => notifications.show({ message: error.message, color: "red" }),
  });
  if (!mayWrite && !comments.length) return null;
  return (
    <section aria-label="Comments">
      <Title order={3} size="h6" mb="xs">
        Comments
      </Title>
      <Stack gap="xs">
        {comments.map((comment) => (
          <Group key={comment.id} justify="space-between" wrap="nowrap" align="flex-start">
            <div style={{ minWidth: 0 }}>
              <Text size="xs" c="dimmed" component="div">
                {nameOf(comment.actor)}, <When at={comment.created_at} />
              </Text>
              <Text size="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
                {comment.text}
              </Text>
            </div>
            {mayWrite && comment.mine && (
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Delete the comment of ${nameOf(comment.actor)}`}
                onClick={() => remove.mutate(comment.id)}
              >
                <IconTrash size={16} />
              </ActionIcon>
            )}
          </Group>
        ))}
        {mayWrite && (
          <SendForm send={send} label="Comment" disabled={!text.trim()}>
            <Textarea
              aria-label="Comment on this row"
              placeholder="Comment on this row"
              autosize
              maxRows={8}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
          </SendForm>
        )}
      </Stack>
    </section>
  );
}

/** An actor as people read it: a person by name alone. */
export function nameOf(actor: string): string {
  return actor.replace(/^user:/, "");
}
