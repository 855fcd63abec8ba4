import { Anchor, Button, Modal, Radio, Stack, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../api/accounts/session";
import { everything, type Schemas } from "../../api/client";
import { exportGguf, ggufsQuery, type GgufPrecision } from "../../api/models/ggufs";
import { SendForm } from "../../shared/forms/SendForm";
import { bytes } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { When } from "../../shared/When";

interface Properties {
  project: string;
  model: string;
}

/** Makes a GGUF file of a model by a run, and offers those that are finished. */
export function ExportGguf(properties: Properties) {
  const mayRun = useMay(properties.project, "run");
  const [opened, dialog] = useDisclosure();
  if (!mayRun) return null;
  return (
    <>
      <Button variant="default" onClick={dialog.open}>
        Export as GGUF
      </Button>
      <Modal opened={opened} onClose={dialog.close} title={`Export ${properties.model} as GGUF`} size="lg">
        <ExportForm {...properties} />
      </Modal>
    </>
  );
}

function ExportForm({ project, model }: Properties) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [precision, setPrecision] = useState<GgufPrecision>("f16");
  const finished = useQuery(ggufsQuery(project, model));
  const send = useMutation({
    mutationFn: () => exportGguf(project, model, precision),
    onSuccess: async (run) => {
      await client.invalidateQueries({ queryKey: everything(project) });
      if (run.state !== "succeeded")
        await navigate({ to: "/p/$project/runs/$run", params: { project, run: run.id } });
    },
  });
  return (
    <Stack>
      <SendForm send={send} label="Export">
        <Text size="sm">
          One file for llama.cpp and Ollama, made by a worker, with a Modelfile. Adapters are merged first.
          The run then compares what llama.cpp makes of a few prompts with what transformers does.
        </Text>
        <Radio.Group
          label="Precision"
          value={precision}
          onChange={(value) => setPrecision(value as GgufPrecision)}
        >
          <Stack gap="xs" mt={4}>
            <Radio value="f16" label="F16: 16 bits for each weight" />
            <Radio value="q8_0" label="Q8_0: 8 bits, about half the size" />
          </Stack>
        </Radio.Group>
      </SendForm>
      {finished.data && finished.data.length > 0 && (
        <Finished project={project} model={model} exports={finished.data} />
      )}
    </Stack>
  );
}

function Finished({ project, model, exports }: Properties & { exports: Schemas["GgufExport"][] }) {
  return (
    <Table aria-label="Finished exports" verticalSpacing="xs">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>File</Table.Th>
          <Table.Th>Made</Table.Th>
          <Table.Th>Compared with transformers</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {exports.map(({ run, made_at, result, files, found }) => (
          <Table.Tr key={run}>
            <Table.Td>
              {files.map((file) => (
                <Text key={file.path} size="sm">
                  <Anchor
                    size="sm"
                    href={`/api/v1/projects/${project}/models/${model}/gguf/${run}/${encodeURIComponent(file.path)}`}
                    download
                  >
                    {file.path}
                  </Anchor>{" "}
                  <Text span c="dimmed" size="xs">
                    {bytes(file.size)}
                  </Text>
                </Text>
              ))}
            </Table.Td>
            <Table.Td>
              <Link to="/p/$project/runs/$run" params={{ project, run }}>
                {made_at ? <When at={made_at} /> : "run"}
              </Link>
            </Table.Td>
            <Table.Td>
              <Text size="sm" c={result.differences?.length || result.unchecked ? "orange" : undefined}>
                {found}.
              </Text>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
