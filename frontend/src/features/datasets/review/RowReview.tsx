import { Alert, Button, Group, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { IconArrowsExchange, IconFlag, IconFlagOff, IconPencil, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useMay } from "../../../api/accounts/session";
import type { Schemas } from "../../../api/client";
import {
  changeRow,
  commentRow,
  deleteRowComment,
  editRowComment,
  flagRow,
  refreshReview,
  type RowChange,
  type RowReview as Review,
  rowReviewQuery,
  undoRow,
  unflagRow,
} from "../../../api/datasets/review";
import { Failure, Loaded } from "../../../shared/Feedback";
import { SendForm } from "../../../shared/forms/SendForm";
import { When } from "../../../shared/When";
import { SampleDifference } from "../versions/SampleDifference";
import { CommentThread, nameOf } from "../../../shared/comments/CommentThread";
import { RowEditor } from "./RowEditor";

type Dataset = Schemas["DatasetOut"];
type Fields = Record<string, unknown>;

const FLIP: Partial<Record<Dataset["kind"], string>> = {
  preferences: "Swap sides",
  unpaired: "Invert thumb",
};
const WILL_BE: Record<RowChange["action"], string> = {
  edit: "Edited for the next version",
  flip: "Flipped for the next version",
  remove: "Not in the next version",
};

interface Properties {
  project: string;
  dataset: Dataset;
  number: number;
  onUnsaved: (unsaved: boolean) => void;
  /** The row as it is stored. */
  children: ReactNode;
}

/** A row with what people do to it: changes for the next version, its flag, its comments. */
export function RowReview({ project, dataset, number, onUnsaved, children }: Properties) {
  const query = useQuery(rowReviewQuery({ project, dataset: dataset.name, number }));
  return (
    <Loaded query={query} rows={4}>
      {(review) => (
        <Reviewed project={project} dataset={dataset} review={review} onUnsaved={onUnsaved}>
          {children}
        </Reviewed>
      )}
    </Loaded>
  );
}

function Reviewed({
  project,
  dataset,
  review,
  onUnsaved,
  children,
}: Omit<Properties, "number"> & { review: Review }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  // Rewards were given to these very texts.
  const mayChange = mayWrite && dataset.kind !== "labelled";
  const path = { project, dataset: dataset.name, number: review.row };
  const key = rowReviewQuery(path).queryKey;
  const [editing, setEditing] = useState(false);
  const { change, flag } = review;
  const refresh = () => refreshReview(client, project, dataset.name);
  const set = useMutation({
    mutationFn: ({ action, sample }: { action: RowChange["action"]; sample?: Fields }) =>
      changeRow(path, {
        action,
        sample: sample ?? null,
        // What the server answered last, also to a change that this page has just sent.
        based_on: client.getQueryData(key)?.change?.revision ?? null,
      }),
    onSuccess: (next) => {
      client.setQueryData(key, (old) => old && { ...old, change: next ?? null });
      void refresh();
    },
    // One after another: each is based on the one before.
    scope: { id: `change ${project} ${dataset.name} ${review.row}` },
  });
  const undo = useMutation({
    mutationFn: () => undoRow(path, change!.revision),
    onSettled: () => {
      setEditing(false);
      set.reset();
      return refresh();
    },
  });
  const remove = () => (change?.action === "remove" ? undo.mutate() : set.mutate({ action: "remove" }));
  const shown = (change?.sample ?? review.sample) as Fields;
  useHotkeys(
    mayChange
      ? [
          ["e", () => setEditing(true)],
          ["x", remove],
        ]
      : [],
  );
  const failed = editing ? undo.error : (set.error ?? undo.error);
  return (
    <Stack>
      {mayWrite && (
        <Group gap="xs">
          {mayChange && (
            <>
              <Button
                size="xs"
                variant="default"
                leftSection={<IconPencil size={14} />}
                disabled={editing || change?.action === "remove"}
                onClick={() => setEditing(true)}
              >
                Edit (e)
              </Button>
              {FLIP[dataset.kind] && (
                <Button
                  size="xs"
                  variant="default"
                  leftSection={<IconArrowsExchange size={14} />}
                  disabled={editing || !!change}
                  onClick={() => set.mutate({ action: "flip" })}
                >
                  {FLIP[dataset.kind]}
                </Button>
              )}
              <Button
                size="xs"
                variant="default"
                leftSection={<IconTrash size={14} />}
                disabled={editing || change?.action === "remove"}
                onClick={remove}
              >
                Remove (x)
              </Button>
            </>
          )}
          <FlagButton path={path} flag={flag} onChange={refresh} />
        </Group>
      )}
      {flag && (
        <Alert variant="light" color="yellow" icon={<IconFlag />} title={flag.reason || "Flagged"}>
          <Text size="xs" component="div">
            {flag.reason && "flagged "}by {nameOf(flag.actor)}, <When at={flag.created_at} />
          </Text>
        </Alert>
      )}
      {failed && <Failure error={failed} retry={() => void refresh().then(() => set.reset())} />}
      {change && (
        <Alert
          variant="light"
          color={change.action === "remove" ? "red" : "teal"}
          title={WILL_BE[change.action]}
        >
          <Group justify="space-between">
            <Text size="xs" component="div">
              by {nameOf(change.actor)}, <When at={change.changed_at} />
            </Text>
            <Button
              size="compact-xs"
              variant="default"
              loading={undo.isPending}
              onClick={() => undo.mutate()}
            >
              Undo
            </Button>
          </Group>
        </Alert>
      )}
      {editing ? (
        <RowEditor
          sample={shown}
          save={(sample) => set.mutate({ action: "edit", sample })}
          saving={set.isPending}
          error={set.error}
          onUnsaved={onUnsaved}
          onDone={() => setEditing(false)}
        />
      ) : change?.sample ? (
        <SampleDifference before={review.sample} after={change.sample} />
      ) : (
        children
      )}
      <CommentThread
        project={path.project}
        comments={review.comments}
        about="this row"
        mayWrite={mayWrite}
        add={(text) => commentRow(path, text)}
        edit={(comment, text) => editRowComment(path.project, path.dataset, comment, text)}
        remove={(comment) => deleteRowComment(path.project, path.dataset, comment)}
        onChange={() => void refresh()}
      />
    </Stack>
  );
}

function FlagButton({
  path,
  flag,
  onChange,
}: {
  path: { project: string; dataset: string; number: number };
  flag: Review["flag"];
  onChange: () => Promise<unknown>;
}) {
  const [opened, { open, close, toggle }] = useDisclosure();
  const [reason, setReason] = useState("");
  const set = useMutation({
    mutationFn: () => flagRow(path, reason.trim()),
    onSuccess: () => {
      close();
      setReason("");
      return onChange();
    },
  });
  const clear = useMutation({ mutationFn: () => unflagRow(path), onSuccess: onChange });
  const press = () => (flag ? clear.mutate() : open());
  useHotkeys([["f", press]]);
  if (flag)
    return (
      <Button
        size="xs"
        variant="default"
        leftSection={<IconFlagOff size={14} />}
        loading={clear.isPending}
        onClick={press}
      >
        Remove the flag (f)
      </Button>
    );
  return (
    <Popover opened={opened} onDismiss={close} width={300} trapFocus withinPortal={false}>
      <Popover.Target>
        <Button size="xs" variant="default" leftSection={<IconFlag size={14} />} onClick={toggle}>
          Flag (f)
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <SendForm send={set} label="Flag the row" onLeave={close}>
          <TextInput
            label="Reason"
            description="May be empty"
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            data-autofocus
          />
        </SendForm>
      </Popover.Dropdown>
    </Popover>
  );
}
