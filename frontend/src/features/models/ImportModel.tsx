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
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { everything } from "../../api/client";
import { useMay } from "../../api/accounts/session";
import { fitQuery } from "../../api/models/fit";
import { uploadModel } from "../../api/models/modelUploads";
import { ROLES } from "../../api/models/models";
import { launchRun } from "../../api/runs/runs";
import { SendForm } from "../../shared/forms/SendForm";
import { bytes } from "../../shared/format/format";
import { folderFacts, type FolderFacts } from "./folderFacts";
import { ModelFit } from "./ModelFit";

const isHubName = (text: string) => /^[^/\s]+\/[^/\s@]+(@\S+)?$/.test(text.trim());

interface Properties {
  project: string;
  /** The run kind that imports models. */
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
  /** The hub name that was checked last. */
  const [asked, setAsked] = useState<string | null>(null);
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
      ? isHubName(hub)
      : !!folder?.files.length && !folder.fault && (!labels.length || label !== null);
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
              folder?.facts && <ModelFit query={fitQuery(project, { facts: folder.facts })} />
            )}
            {folder && folder.gguf.length > 1 && (
              <Select
                label="The GGUF file"
                description="The folder has several; one is imported."
                placeholder="Choose one"
                data={folder.gguf.map((file) => file.name)}
                value={folder.files[0]?.name ?? null}
                onChange={(name) =>
                  setFolder({ ...folder, files: folder.gguf.filter((file) => file.name === name) })
                }
                allowDeselect={false}
              />
            )}
            {folder && folder.gguf.length > 0 && folder.files[0] && (
              <Text size="sm">
                {bytes(folder.files[0].size)} as a GGUF file. A worker dequantises it; what quantisation lost
                does not come back.
              </Text>
            )}
            <Text size="xs" c="dimmed">
              Its safetensors, config, tokenizer and template are uploaded, or its GGUF file, and nothing else
              of it. Models of many gigabytes are faster with <code>steerboard models import ./folder</code>.
            </Text>
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="hub">
          <Stack gap="sm">
            <TextInput
              label="Name on the Hugging Face hub"
              placeholder="org/name[@revision][:file.gguf]"
              description="A worker downloads it; the run's log lists what was imported and what was left out."
              value={hub}
              onChange={(event) => setHub(event.currentTarget.value)}
            />
            <Group>
              <Button variant="default" disabled={!isHubName(hub)} onClick={() => setAsked(hub.trim())}>
                Check its size and fit
              </Button>
            </Group>
            {asked !== null && asked === hub.trim() && (
              <ModelFit query={fitQuery(project, { source: asked })} />
            )}
          </Stack>
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
          label="Name in the project"
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
