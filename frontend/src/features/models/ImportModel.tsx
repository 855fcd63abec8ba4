import {
  Button,
  FileButton,
  Group,
  Modal,
  Progress,
  Select,
  Stack,
  Tabs,
  Text,
  TextInput,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { everything } from "../../api/client";
import { useMay } from "../../api/accounts/session";
import { uploadModel } from "../../api/models/modelUploads";
import { ROLES } from "../../api/models/models";
import { workersQuery } from "../../api/runs/queue";
import { launchRun } from "../../api/runs/runs";
import { Facts, type Fact } from "../../shared/Facts";
import { SendForm } from "../../shared/forms/SendForm";
import { bytes } from "../../shared/format/format";
import { folderFacts, type FolderFacts } from "./folderFacts";

/** Of a device's memory; others need a little too. */
const SHARE = 0.9;

interface Properties {
  project: string;
  /** The run kind that brings models in. */
  kind: string;
}

/** A model from a folder of this machine or from the hub. */
export function ImportModel({ project, kind }: Properties) {
  const mayWrite = useMay(project, "write");
  const [opened, dialog] = useDisclosure();
  return (
    <>
      <Button onClick={dialog.open}>Import a model</Button>
      <Modal opened={opened} onClose={dialog.close} title="Import a model" size="lg">
        <ImportForm project={project} kind={kind} mayUpload={mayWrite} />
      </Modal>
    </>
  );
}

function ImportForm({ project, kind, mayUpload }: Properties & { mayUpload: boolean }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [from, setFrom] = useState(mayUpload ? "folder" : "hub");
  const [folder, setFolder] = useState<FolderFacts | null>(null);
  const [hub, setHub] = useState("");
  const [name, setName] = useState("");
  const [role, setRole] = useState<string | null>(null);
  const [label, setLabel] = useState<string | null>(null);
  const [progress, setProgress] = useState<["reading" | "sending", number] | null>(null);
  const stop = useRef<AbortController | null>(null);
  const labels = from === "folder" && folder && folder.labels.length > 1 ? folder.labels : [];
  const send = useMutation({
    mutationFn: async () => {
      stop.current = new AbortController();
      const source =
        from === "hub"
          ? hub.trim()
          : await uploadModel(
              project,
              folder!.name,
              folder!.files,
              (step, share) => setProgress([step, share]),
              stop.current.signal,
            );
      const config = {
        run: kind,
        source,
        ...(role && { role }),
        ...(labels.length && label !== null && { label: Number(label) }),
      };
      return launchRun(project, {
        config,
        inputs: {},
        name: name.trim() || null,
        pool: "default",
        priority: 0,
        reuse: !name.trim(),
      });
    },
    onSettled: () => setProgress(null),
    onSuccess: async (run) => {
      await client.invalidateQueries({ queryKey: everything(project) });
      await navigate({ to: "/p/$project/runs/$run", params: { project, run: run.id } });
    },
  });
  const aborted = send.error?.name === "AbortError";
  const ready =
    from === "hub"
      ? /^[^/\s]+\/[^/\s]+$/.test(hub.trim())
      : !!folder && !folder.fault && (!labels.length || label !== null);
  return (
    <SendForm
      send={{ mutate: send.mutate, isPending: send.isPending, error: aborted ? null : send.error }}
      label="Import"
      disabled={!ready}
    >
      <Tabs value={from} onChange={(value) => setFrom(value ?? "folder")}>
        <Tabs.List mb="sm">
          <Tabs.Tab value="folder" disabled={!mayUpload}>
            A folder
          </Tabs.Tab>
          <Tabs.Tab value="hub">The hub</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="folder">
          <Stack gap="sm">
            <Group>
              <FileButton
                multiple
                inputProps={{ webkitdirectory: "", "aria-label": "Folder" } as React.ComponentProps<"input">}
                onChange={(files) => {
                  if (!files.length) return;
                  setLabel(null);
                  void folderFacts(files).then(setFolder);
                }}
              >
                {(properties) => (
                  <Button variant="default" {...properties}>
                    Choose a folder
                  </Button>
                )}
              </FileButton>
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {folder?.name}
              </Text>
            </Group>
            {folder?.fault ? (
              <Text size="sm" c="red">
                {folder.fault}
              </Text>
            ) : (
              folder && <FitCheck folder={folder} />
            )}
            <Text size="xs" c="dimmed">
              Its safetensors, config, tokenizer and template are uploaded, and nothing else of it. Models of
              many gigabytes are faster with <code>steerboard models import ./folder</code>.
            </Text>
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="hub">
          <TextInput
            label="Name on the Hugging Face hub"
            placeholder="org/name[@revision]"
            description="A worker downloads it; the run's log has what came in and what was left out."
            value={hub}
            onChange={(event) => setHub(event.currentTarget.value)}
          />
        </Tabs.Panel>
      </Tabs>
      {labels.length > 0 && (
        <Select
          label="The label that is the reward"
          description="The others are not kept."
          data={labels.map((text, number) => ({ value: String(number), label: `${number}: ${text}` }))}
          value={label}
          onChange={setLabel}
        />
      )}
      <Group grow align="flex-start">
        <TextInput
          label="Name here"
          placeholder="generated"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Select
          label="Role"
          placeholder="from its files"
          clearable
          data={ROLES}
          value={role}
          onChange={setRole}
        />
      </Group>
      {progress && (
        <Group gap="sm" wrap="nowrap">
          <Text size="sm" style={{ whiteSpace: "nowrap" }}>
            {progress[0] === "reading" ? "Reading it" : "Uploading it"}
          </Text>
          <Progress value={100 * progress[1]} aria-label="Upload" style={{ flex: 1 }} />
          <Button size="compact-xs" variant="subtle" color="gray" onClick={() => stop.current?.abort()}>
            Stop
          </Button>
        </Group>
      )}
    </SendForm>
  );
}

/** Size, template, licence, and whether the weights have room on each worker. */
function FitCheck({ folder }: { folder: FolderFacts }) {
  const workers = useQuery(workersQuery);
  const facts: Fact[] = [
    ["Architecture", folder.architecture ?? "not named"],
    ["Size", bytes(folder.size)],
    [
      "Chat template",
      folder.template ? "its own" : "none",
      folder.template ? undefined : "the plain one is used",
    ],
    ["Licence", folder.licence ?? "not named"],
  ];
  const alive = (workers.data ?? []).filter((one) => one.alive && typeof one.devices.memory === "number");
  return (
    <Stack gap="xs">
      <Facts facts={facts} />
      {alive.map((worker) => {
        const memory = worker.devices.memory as number;
        const onGpu = Array.isArray(worker.devices.gpus) && worker.devices.gpus.length > 0;
        const needed = folder.weights * (folder.half && !onGpu ? 2 : 1);
        const fits = needed < SHARE * memory;
        return (
          <Text key={worker.id} size="sm" c={fits ? undefined : "red"}>
            {worker.name}: {bytes(needed)} of weights {fits ? "fit into" : "are too large for"}{" "}
            {bytes(memory)}
            {onGpu ? " of one GPU" : " of memory"}
          </Text>
        );
      })}
    </Stack>
  );
}
