import { Badge, Button, Card, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../../api/accounts/session";
import type { Schemas } from "../../../api/client";
import { datasetsQuery } from "../../../api/datasets/datasets";
import {
  discardChanges,
  makeVersion,
  pendingQuery,
  refreshReview,
  reviewQuery,
  undoRow,
} from "../../../api/datasets/review";
import { ActionBar } from "../../../shared/ActionBar";
import { Confirm } from "../../../shared/Confirm";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { MadeVersion } from "../../../shared/MadeVersion";
import { More } from "../../../shared/More";
import { When } from "../../../shared/When";
import { SampleDifference, WholeSample } from "../versions/SampleDifference";
import { nameOf } from "../../../shared/comments/CommentThread";
import { pendingRows, pendingWords } from "./pendingWords";

type Dataset = Schemas["DatasetOut"];
type Pending = Schemas["PendingRow"];

const ACTIONS = { edit: "edited", flip: "flipped", remove: "removed" } as const;

/** Every change that is not in a version yet, and the button that makes a version of them. */
export function PendingView({ project, dataset }: { project: string; dataset: Dataset }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const summary = useQuery(reviewQuery(project, dataset.name));
  const query = useInfiniteQuery(pendingQuery(project, dataset.name));
  const [name, setName] = useState("");
  const [asking, ask] = useDisclosure();
  const refresh = () => refreshReview(client, project, dataset.name);
  const make = useMutation({
    mutationFn: () => makeVersion(project, dataset.name, name.trim() || null),
    onSuccess: () => {
      setName("");
      void refresh();
      void client.invalidateQueries({ queryKey: datasetsQuery(project).queryKey });
      void client.invalidateQueries({ queryKey: [project, "dataset", dataset.name, "versions"] });
    },
  });
  const discard = useMutation({
    mutationFn: () => discardChanges(project, dataset.name),
    onSuccess: () => {
      ask.close();
      return refresh();
    },
  });
  return (
    <Loaded query={summary} rows={3}>
      {(found) => {
        const total = pendingRows(found);
        if (!total)
          return make.data ? (
            <MadeVersion project={project} made={make.data} />
          ) : (
            <Empty title="No pending changes">Open a row to edit, flip or remove it.</Empty>
          );
        return (
          <Stack>
            <Text size="sm" c="dimmed">
              {pendingWords(found)} by {found.actors.map(nameOf).join(", ")}. This dataset stays as it is; a
              new version will have the changes, and the flags and comments.
            </Text>
            <Loaded query={query} rows={4}>
              {(pages) => (
                <Stack gap="sm" role="list" aria-label="Pending changes">
                  {pages.pages
                    .flatMap((page) => page.items)
                    .map((row) => (
                      <PendingCard
                        key={row.row}
                        project={project}
                        dataset={dataset}
                        row={row}
                        mayWrite={mayWrite}
                        onUndone={() => void refresh()}
                      />
                    ))}
                  <More query={query} />
                </Stack>
              )}
            </Loaded>
            {mayWrite && (
              <ActionBar
                error={make.error}
                says={
                  <TextInput
                    aria-label="Name of the new version"
                    placeholder={`name, or ${dataset.name}-edited-N`}
                    maw={320}
                    value={name}
                    onChange={(event) => setName(event.currentTarget.value)}
                  />
                }
              >
                <Button variant="default" onClick={ask.open}>
                  Discard all
                </Button>
                <Button loading={make.isPending} onClick={() => make.mutate()}>
                  Make a version with {counted(total, "change")}
                </Button>
              </ActionBar>
            )}
            <Confirm
              title={asking ? `Discard ${counted(total, "change")}?` : null}
              go="Discard"
              pending={discard.isPending}
              error={discard.error}
              onClose={ask.close}
              onGo={() => discard.mutate()}
            >
              The changes of {found.actors.map(nameOf).join(", ")} are deleted and cannot be restored. Flags
              and comments stay.
            </Confirm>
          </Stack>
        );
      }}
    </Loaded>
  );
}

interface CardProperties {
  project: string;
  dataset: Dataset;
  row: Pending;
  mayWrite: boolean;
  onUndone: () => void;
}

function PendingCard({ project, dataset, row, mayWrite, onUndone }: CardProperties) {
  const undo = useMutation({
    mutationFn: () => undoRow({ project, dataset: dataset.name, number: row.row }, row.change.revision),
    onSuccess: onUndone,
  });
  return (
    <Card withBorder p="sm" role="listitem" aria-label={`Row ${row.row}`}>
      <Group justify="space-between" mb={6}>
        <Group gap="xs">
          <Badge className="state-badge" color={row.after ? "yellow" : "red"}>
            {ACTIONS[row.change.action]}
          </Badge>
          <Link
            to="/p/$project/datasets/$dataset"
            params={{ project, dataset: dataset.name }}
            search={{ row: row.row }}
            size="sm"
            underline="always"
          >
            row {count(row.row)}
          </Link>
          <Text size="xs" c="dimmed" component="div">
            {nameOf(row.change.actor)}, <When at={row.change.changed_at} />
            {row.before.split === "held_out" && ", held out"}
          </Text>
        </Group>
        {mayWrite && (
          <Button size="compact-xs" variant="default" loading={undo.isPending} onClick={() => undo.mutate()}>
            Undo
          </Button>
        )}
      </Group>
      {undo.error && <Failure error={undo.error} retry={onUndone} />}
      {row.after ? (
        <SampleDifference before={row.before.sample} after={row.after.sample} />
      ) : (
        <WholeSample sample={row.before.sample} />
      )}
    </Card>
  );
}
