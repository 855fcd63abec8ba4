import { Button, FileInput, Modal, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { everything } from "../../../api/client";
import { importHistory } from "../../../api/runs/histories";
import { SendForm } from "../../../shared/forms/SendForm";

/** Brings in the metrics of a run that another trainer made. */
export function ImportHistory({ project }: { project: string }) {
  const [opened, dialog] = useDisclosure();
  return (
    <>
      <Button variant="default" onClick={dialog.open}>
        Import a history
      </Button>
      <Modal opened={opened} onClose={dialog.close} title="Import a history">
        <HistoryForm project={project} />
      </Modal>
    </>
  );
}

function HistoryForm({ project }: { project: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState("");
  const send = useMutation({
    mutationFn: () => importHistory(project, { file, name: name.trim() }),
    onSuccess: async ({ run }) => {
      await client.invalidateQueries({ queryKey: everything(project) });
      await navigate({ to: "/p/$project/runs/$run", params: { project, run: run.id } });
    },
  });
  return (
    <SendForm send={send} label="Import" disabled={!file}>
      <Text size="sm" c="dimmed">
        The metrics of a run that was trained elsewhere become a run to compare with.
      </Text>
      <FileInput
        label="File"
        required
        placeholder="Choose a file"
        description="trainer_state.json of transformers or TRL, or a table with a column named step and one for each metric"
        accept=".json,.jsonl,.csv,.tsv,.parquet,.gz"
        value={file}
        onChange={setFile}
      />
      <TextInput
        label="Name"
        placeholder="history-N"
        maxLength={128}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </SendForm>
  );
}
