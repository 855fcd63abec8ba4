import {
  Button,
  Card,
  FileInput,
  Group,
  Modal,
  Radio,
  Select,
  Stack,
  Switch,
  Table,
  Text,
  TextInput,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { Problem, unsafeHeaders, type Schemas } from "../../api/client";
import { datasetsQuery } from "../../api/data";
import { useMay } from "../../api/session";
import { Empty, Failure, Loaded } from "../../shared/Feedback";
import { count } from "../../shared/format";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";

const route = getRouteApi("/p/$project/datasets");
const KINDS = ["instructions", "preferences", "prompts", "labelled", "unpaired"];

export function DatasetsPage() {
  const { project } = route.useParams();
  const query = useQuery(datasetsQuery(project));
  const [importing, dialog] = useDisclosure();
  const mayWrite = useMay(project, "write");
  return (
    <Page title="Datasets" actions={mayWrite && <Button onClick={dialog.open}>Import</Button>}>
      <Loaded query={query}>
        {(page) =>
          page.items.length ? (
            <Table.ScrollContainer minWidth={640}>
              <Table aria-label="Datasets, the newest first">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Dataset</Table.Th>
                    <Table.Th>Kind</Table.Th>
                    <Table.Th ta="right">Rows</Table.Th>
                    <Table.Th ta="right">Held out</Table.Th>
                    <Table.Th>Rewards from</Table.Th>
                    <Table.Th>Created</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {page.items.map((one) => (
                    <Table.Tr key={one.id}>
                      <Table.Td>
                        <Link
                          to="/p/$project/datasets/$dataset"
                          params={{ project, dataset: one.name }}
                          search={{}}
                          fw={550}
                        >
                          {one.name}
                        </Link>
                      </Table.Td>
                      <Table.Td>{one.kind}</Table.Td>
                      <Table.Td ta="right">{count(one.rows)}</Table.Td>
                      <Table.Td ta="right">{count(one.held_out_rows)}</Table.Td>
                      <Table.Td>{one.reward_source ?? "–"}</Table.Td>
                      <Table.Td>
                        <When at={one.created_at} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          ) : (
            <Empty
              title="No datasets yet"
              action={mayWrite && <Button onClick={dialog.open}>Import one</Button>}
            >
              Instructions, preferences, prompts or graded answers from jsonl, csv or parquet files, or from
              the Hugging Face hub.
            </Empty>
          )
        }
      </Loaded>
      <Modal opened={importing} onClose={dialog.close} title="Import a dataset" size="lg">
        <ImportForm project={project} />
      </Modal>
    </Page>
  );
}

function ImportForm({ project }: { project: string }) {
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [hub, setHub] = useState("");
  const [name, setName] = useState("");
  const [kind, setKind] = useState<string | null>(null);
  const [mapping, setMapping] = useState("");
  const [badRows, setBadRows] = useState("refuse");
  const [clean, setClean] = useState(true);
  const start = useMutation({
    mutationFn: async () => {
      const form = new FormData();
      const fields = {
        name,
        kind: kind ?? "",
        hub: file ? "" : hub,
        mapping,
        bad_rows: badRows,
        clean: String(clean),
      };
      for (const [key, value] of Object.entries(fields)) if (value) form.append(key, value);
      if (file) form.append("file", file);
      const response = await fetch(`/api/v1/projects/${project}/datasets/import`, {
        method: "POST",
        headers: unsafeHeaders(),
        body: form,
      });
      if (!response.ok) throw await Problem.of(response);
      return (await response.json()) as Schemas["ImportReport"];
    },
    onSuccess: () => client.invalidateQueries({ queryKey: [project, "datasets"] }),
  });
  if (start.data) return <Imported project={project} report={start.data} />;
  return (
    <Stack>
      <FileInput
        label="File"
        description="jsonl, jsonl.gz, csv or parquet"
        value={file}
        onChange={setFile}
        clearable
        placeholder="Choose a file"
      />
      {!file && (
        <TextInput
          label="or a hub dataset"
          placeholder="org/name[@revision]"
          value={hub}
          onChange={(event) => setHub(event.currentTarget.value)}
        />
      )}
      <Group grow align="flex-start">
        <TextInput
          label="Name"
          required
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Select label="Kind" data={KINDS} value={kind} onChange={setKind} placeholder="detect" clearable />
      </Group>
      <TextInput
        label="Columns"
        description="Only where they are not found by their names: prompt=question,chosen=best"
        value={mapping}
        onChange={(event) => setMapping(event.currentTarget.value)}
      />
      <Radio.Group label="Rows that are not valid" value={badRows} onChange={setBadRows}>
        <Group mt="xs">
          <Radio value="refuse" label="Refuse the file" />
          <Radio value="skip" label="Skip them, with a count" />
        </Group>
      </Radio.Group>
      <Switch
        label="Clean: drop empty rounds, identical sides and duplicates, with a count for each"
        checked={clean}
        onChange={(event) => setClean(event.currentTarget.checked)}
      />
      {start.error && <Failure error={start.error} />}
      <Group justify="flex-end">
        <Button loading={start.isPending} disabled={!name || (!file && !hub)} onClick={() => start.mutate()}>
          Import
        </Button>
      </Group>
    </Stack>
  );
}

function Imported({ project, report }: { project: string; report: Schemas["ImportReport"] }) {
  const cleaned = Object.entries(report.cleaned ?? {}).filter(([, rows]) => rows);
  return (
    <Stack>
      <Text>
        <b>{count(report.dataset.rows)}</b> of {count(report.read)} rows are in{" "}
        <Link
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: report.dataset.name }}
          search={{}}
        >
          {report.dataset.name}
        </Link>
        .
      </Text>
      {cleaned.map(([rule, rows]) => (
        <Text key={rule} size="sm">
          {count(rows)} dropped: {rule.replaceAll("_", " ")}
        </Text>
      ))}
      {report.bad_rows > 0 && (
        <Card withBorder p="sm">
          <Text size="sm">{count(report.bad_rows)} rows were not valid and were skipped.</Text>
        </Card>
      )}
    </Stack>
  );
}
