import { Button } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { editDataset } from "../../../api/runs/pairs";
import { ActionBar } from "../../../shared/ActionBar";
import { count } from "../../../shared/format/format";
import { MadeVersion } from "../../../shared/MadeVersion";
import type { Mark } from "./PairCard";

export type Marks = Record<number, Mark>;
/** Rows that one edit takes. */
const MOST_MARKS = 1000;
/** Held-out rows that one edit flips. */
const MOST_HELD_OUT_FLIPS = 1;

/** What is marked, and the version of the dataset that it makes. */
export function NewVersion({
  project,
  dataset,
  marks,
  heldOut,
  onMade,
}: {
  project: string;
  dataset: string;
  marks: Marks;
  heldOut: ReadonlySet<number>;
  onMade: () => void;
}) {
  const client = useQueryClient();
  const rowsOf = (mark: Mark) =>
    Object.entries(marks)
      .filter(([, one]) => one === mark)
      .map(([row]) => Number(row));
  const drop = rowsOf("drop");
  const flip = rowsOf("flip");
  const edit = useMutation({
    mutationFn: () => editDataset(project, dataset, drop, flip),
    onSuccess: async () => {
      onMade();
      await client.invalidateQueries({ queryKey: datasetsQuery(project).queryKey });
    },
  });
  const marked = drop.length + flip.length;
  const heldOutFlips = flip.filter((row) => heldOut.has(row)).length;
  const changed = heldOutFlips + drop.filter((row) => heldOut.has(row)).length;
  const tooMany =
    marked > MOST_MARKS
      ? `${count(marked)} rows are marked; one version takes ${count(MOST_MARKS)}`
      : heldOutFlips > MOST_HELD_OUT_FLIPS
        ? `${count(heldOutFlips)} held-out rows are marked to flip; one version may flip one`
        : undefined;
  return (
    <ActionBar
      says={
        tooMany ??
        `${count(drop.length)} to drop, ${count(flip.length)} to flip${changed ? `; ${count(changed)} held out` : ""}`
      }
      error={edit.error}
      outcome={edit.data && <MadeVersion project={project} made={edit.data} />}
    >
      <Button variant="default" disabled={!marked} onClick={onMade}>
        Clear marks
      </Button>
      <Button disabled={!marked || !!tooMany} loading={edit.isPending} onClick={() => edit.mutate()}>
        New dataset version
      </Button>
    </ActionBar>
  );
}
