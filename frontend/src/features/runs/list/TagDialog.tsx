import { Modal, TagsInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { everything } from "../../../api/client";
import { tagsQuery } from "../../../api/marks";
import { changeRuns } from "../../../api/runs/list";
import { SendForm } from "../../../shared/forms/SendForm";

interface Properties {
  project: string;
  runs: string[];
  onClose: () => void;
  onDone: () => void;
}

/** Adds tags to all of the runs, and removes others. */
export function TagDialog({ project, runs, onClose, onDone }: Properties) {
  const client = useQueryClient();
  const known = useQuery(tagsQuery(project, "run"));
  const names = known.data?.map((one) => one.tag) ?? [];
  const [added, setAdded] = useState<string[]>([]);
  const [removed, setRemoved] = useState<string[]>([]);
  const change = useMutation({
    mutationFn: () =>
      changeRuns(project, { action: "tag", runs, add_tags: added, remove_tags: removed, skip: false }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: everything(project) });
      onDone();
    },
  });
  const several = runs.length === 1 ? "the run" : `${runs.length} runs`;
  return (
    <Modal opened onClose={onClose} title={`Tag ${several}`}>
      <SendForm
        send={change}
        label="Change the tags"
        disabled={!added.length && !removed.length}
        onLeave={onClose}
      >
        <TagsInput label="Add" data={names} value={added} onChange={setAdded} data-autofocus />
        <TagsInput label="Remove" data={names} value={removed} onChange={setRemoved} />
      </SendForm>
    </Modal>
  );
}
