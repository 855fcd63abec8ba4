import { Button, Group, Stack, TagsInput, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../api/accounts/session";
import { everything, type Schemas } from "../../api/client";
import { changeMarks, type Marked, type Marks, marksQuery, tagsQuery } from "../../api/marks";
import { Confirm } from "../Confirm";
import { Failure } from "../Feedback";
import { When } from "../When";
import { Tags } from "./Tags";

interface Properties {
  project: string;
  type: Marked;
  item: string;
}

export interface Deletion {
  name: string;
  /** What goes with it and what stays. */
  about: string;
  remove: () => Promise<unknown>;
  /** Leaves the page of what is gone. */
  onGone: () => Promise<void>;
}

/** The tags and notes of a thing, to read and to change; its archive and its deletion. */
export function MarksPanel({ project, type, item, deletion }: Properties & { deletion?: Deletion }) {
  const marks = useQuery(marksQuery(project, type, item));
  const mayWrite = useMay(project, "write");
  const [editing, setEditing] = useState(false);
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (body: Schemas["MarksChange"]) => changeMarks(project, type, item, body),
    onSuccess: () => client.invalidateQueries({ queryKey: everything(project) }),
    onError: (error) => notifications.show({ message: error.message, color: "red" }),
  });
  if (!marks.data) return marks.error && <Failure error={marks.error} />;
  const { tags, notes, notes_html, archived_at } = marks.data;
  if (editing)
    return (
      <Editor project={project} type={type} item={item} marks={marks.data} onDone={() => setEditing(false)} />
    );
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Tags tags={tags} />
        {archived_at && (
          <Text size="sm" c="dimmed">
            archived <When at={archived_at} />
          </Text>
        )}
        {mayWrite && (
          <>
            <Button variant="subtle" size="compact-sm" onClick={() => setEditing(true)}>
              {tags.length || notes ? "Edit tags and notes" : "Add tags or notes"}
            </Button>
            <Button
              variant="subtle"
              color="gray"
              size="compact-sm"
              loading={change.isPending}
              onClick={() => change.mutate({ archived: !archived_at } as Schemas["MarksChange"])}
            >
              {archived_at ? "Take it back from the archive" : "Archive"}
            </Button>
            {deletion && <DeleteButton project={project} type={type} deletion={deletion} />}
          </>
        )}
      </Group>
      {notes_html && <div className="notes" dangerouslySetInnerHTML={{ __html: notes_html }} />}
    </Stack>
  );
}

function DeleteButton({ project, type, deletion }: { project: string; type: Marked; deletion: Deletion }) {
  const [asking, ask] = useState(false);
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: deletion.remove,
    onSuccess: async () => {
      await deletion.onGone();
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  return (
    <>
      <Button variant="subtle" color="red" size="compact-sm" onClick={() => ask(true)}>
        Delete
      </Button>
      <Confirm
        title={asking ? `Delete ${deletion.name}?` : null}
        go={`Delete the ${type}`}
        pending={remove.isPending}
        error={remove.error}
        onClose={() => {
          ask(false);
          remove.reset();
        }}
        onGo={() => remove.mutate()}
      >
        {deletion.about}
      </Confirm>
    </>
  );
}

function Editor({ project, type, item, marks, onDone }: Properties & { marks: Marks; onDone: () => void }) {
  const client = useQueryClient();
  const known = useQuery(tagsQuery(project, type));
  const [tags, setTags] = useState(marks.tags);
  const [notes, setNotes] = useState(marks.notes);
  const save = useMutation({
    mutationFn: () => changeMarks(project, type, item, { tags, notes } as Schemas["MarksChange"]),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: everything(project) });
      onDone();
    },
  });
  return (
    <Stack gap="xs">
      <TagsInput
        label="Tags"
        placeholder={tags.length ? "" : "Type one and press Enter"}
        data={known.data?.map((one) => one.tag) ?? []}
        value={tags}
        onChange={setTags}
        maxTags={50}
        clearable
      />
      <Textarea
        label="Notes"
        description="In Markdown"
        value={notes}
        onChange={(event) => setNotes(event.currentTarget.value)}
        autosize
        minRows={3}
        maxRows={20}
      />
      {save.error && <Failure error={save.error} />}
      <Group gap="xs">
        <Button size="compact-sm" loading={save.isPending} onClick={() => save.mutate()}>
          Save
        </Button>
        <Button variant="default" size="compact-sm" onClick={onDone}>
          Discard
        </Button>
      </Group>
    </Stack>
  );
}
