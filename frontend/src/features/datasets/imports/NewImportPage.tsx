import {
  Button,
  Card,
  Divider,
  Group,
  Progress,
  Stack,
  Text,
  TextInput,
  UnstyledButton,
} from "@mantine/core";
import { IconFileUpload } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useRef, useState } from "react";
import {
  formatsQuery,
  type Import,
  importFromHub,
  importQuery,
  importsQuery,
  upload,
} from "../../../api/datasets/imports";
import { useMay } from "../../../api/accounts/session";
import { Empty, Failure } from "../../../shared/Feedback";
import { bytes } from "../../../shared/format/format";
import { Page } from "../../../shared/Page";
import { UnfinishedImports } from "./UnfinishedImports";

const route = getRouteApi("/p/$project/imports");

/** The first step of an import: which file, or which hub dataset. */
export function NewImportPage() {
  const { project } = route.useParams();
  const mayWrite = useMay(project, "write");
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const { data: readable } = useQuery(formatsQuery(project));
  const [hub, setHub] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const [share, setShare] = useState(0);
  const [over, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const stop = useRef<AbortController | null>(null);
  const opened = (made: Import) => {
    client.setQueryData(importQuery(project, made.id).queryKey, made);
    void client.invalidateQueries({ queryKey: importsQuery(project).queryKey });
    void navigate({ to: "/p/$project/imports/$import", params: { project, import: made.id } });
  };
  const sending = useMutation({
    mutationFn: (chosen: File) => {
      stop.current = new AbortController();
      setFile(chosen);
      setShare(0);
      return upload(project, chosen, setShare, stop.current.signal);
    },
    onSuccess: opened,
  });
  const naming = useMutation({
    mutationFn: () => importFromHub(project, hub),
    onSuccess: (made) => opened(made as Import),
  });
  const aborted = sending.error?.name === "AbortError";
  if (!mayWrite) {
    return (
      <Page title="Import a dataset">
        <Empty title="Your role is read-only">Importing needs the role engineer or owner.</Empty>
      </Page>
    );
  }
  return (
    <Page
      title="Import a dataset"
      about="Instructions, preferences, prompts, graded answers or single verdicts; no dataset is stored before you have seen its rows."
    >
      <Card withBorder maw={760}>
        <Stack>
          <UnstyledButton
            className="drop"
            data-over={over || undefined}
            onClick={() => chooser.current?.click()}
            onDragOver={(event: React.DragEvent) => {
              event.preventDefault();
              setOver(true);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(event: React.DragEvent) => {
              event.preventDefault();
              setOver(false);
              const dropped = event.dataTransfer.files[0];
              if (dropped) sending.mutate(dropped);
            }}
          >
            <IconFileUpload size={32} stroke={1.4} />
            <Text fw={600}>Drop a file here, or choose one</Text>
            <Text size="sm" c="dimmed">
              {readable?.words}
            </Text>
          </UnstyledButton>
          <input
            ref={chooser}
            type="file"
            hidden
            aria-label="File"
            accept={readable?.endings.join(",")}
            onChange={(event) => {
              const chosen = event.currentTarget.files?.[0];
              event.currentTarget.value = "";
              if (chosen) sending.mutate(chosen);
            }}
          />
          {sending.isPending && file && (
            <Stack gap={4}>
              <Group justify="space-between">
                <Text size="sm">
                  {file.name}, {bytes(file.size)}
                </Text>
                <Button size="compact-xs" variant="subtle" color="gray" onClick={() => stop.current?.abort()}>
                  Stop
                </Button>
              </Group>
              <Progress value={100 * share} animated={share === 1} aria-label="Upload" />
              {share === 1 && (
                <Text size="xs" c="dimmed">
                  Reading its columns…
                </Text>
              )}
            </Stack>
          )}
          {sending.error && !aborted && (
            <Failure error={sending.error} retry={file ? () => sending.mutate(file) : undefined} />
          )}
          <Divider label="or" />
          <form
            onSubmit={(event) => {
              event.preventDefault();
              naming.mutate();
            }}
          >
            <Group align="flex-end">
              <TextInput
                label="A dataset of the Hugging Face hub"
                placeholder="org/name[@revision][:split]"
                value={hub}
                style={{ flex: 1 }}
                onChange={(event) => setHub(event.currentTarget.value)}
              />
              <Button
                type="submit"
                variant="default"
                loading={naming.isPending}
                disabled={!hub.includes("/")}
              >
                Fetch
              </Button>
            </Group>
          </form>
          {naming.error && <Failure error={naming.error} />}
        </Stack>
      </Card>
      <UnfinishedImports project={project} />
    </Page>
  );
}
