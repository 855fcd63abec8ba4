import { Button, Code, CopyButton, Group, Popover, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { modelQuery } from "../../api/models/models";
import type { RunDetail } from "../../api/runs/runs";
import { useMay } from "../../api/accounts/session";
import { LinkButton, useProject } from "../../shared/links";

/** What to do with the model of a run that succeeded. */
export function NextSteps({ run }: { run: RunDetail }) {
  const project = useProject();
  const id = run.outputs.find((output) => output.type === "model")?.id;
  const model = useQuery({
    ...modelQuery(project, id ?? ""),
    enabled: run.state === "succeeded" && !!id,
  }).data;
  if (!model) return null;
  return <Offers project={project} run={run.id} model={model.name} answers={model.answers} />;
}

interface Properties {
  project: string;
  run: string;
  model: string;
  answers: boolean;
}

function Offers({ project, run, model, answers }: Properties) {
  const mayWrite = useMay(project, "write");
  const button = { component: "a", variant: "light", size: "xs" } as const;
  return (
    <Group gap="xs" role="group" aria-label={`Next steps with ${model}`}>
      <Text size="sm" c="dimmed">
        Next
      </Text>
      {answers && mayWrite && (
        <LinkButton {...button} to="/p/$project/playground" params={{ project }} search={{ model }}>
          Playground
        </LinkButton>
      )}
      {answers && mayWrite && (
        <LinkButton {...button} to="/p/$project/evaluations/new" params={{ project }} search={{ model }}>
          Evaluate
        </LinkButton>
      )}
      <LinkButton {...button} to="/p/$project/compare" params={{ project }} search={{ runs: [run] }}>
        Compare
      </LinkButton>
      <Export model={model} />
    </Group>
  );
}

function Export({ model }: { model: string }) {
  const command = `steerboard models export ${model} ./${model}`;
  return (
    <Popover position="bottom-start" withArrow trapFocus>
      <Popover.Target>
        <Button variant="light" size="xs">
          Export
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw={420}>
        <Text size="sm" mb="xs">
          Writes a folder that transformers and vLLM load.
        </Text>
        <Group gap="xs">
          <Code style={{ overflowWrap: "anywhere", flex: 1 }}>{command}</Code>
          <CopyButton value={command} timeout={3000}>
            {({ copied, copy }) => (
              <Button size="compact-xs" variant="default" onClick={copy}>
                {copied ? "Copied" : "Copy"}
              </Button>
            )}
          </CopyButton>
        </Group>
      </Popover.Dropdown>
    </Popover>
  );
}
