import { Group, Stack, Text, Title } from "@mantine/core";
import { ENDED, type RunDetail } from "../../api/runs/runs";
import { Link, useProject } from "../../shared/links";

/** What went in, and what came out. */
export function RunThings({ run }: { run: RunDetail }) {
  return (
    <Stack gap={4}>
      <Title order={2} size="h6">
        Inputs
      </Title>
      {run.inputs.map((input) => (
        <Group gap="xs" key={input.name} wrap="nowrap" align="flex-start">
          <Text size="sm" c="dimmed" w={96} flex="none" truncate title={input.name}>
            {input.name}
          </Text>
          <Thing type={input.type} id={input.id} label={input.label} />
        </Group>
      ))}
      {!run.inputs.length && (
        <Text size="sm" c="dimmed">
          none
        </Text>
      )}
      <Title order={2} size="h6" mt="xs">
        Outputs
      </Title>
      {run.outputs.map((output) => (
        <Group gap="xs" key={output.name} wrap="nowrap" align="flex-start">
          <Text size="sm" c="dimmed" w={96} flex="none" truncate title={output.name}>
            {output.name}
          </Text>
          <Thing type={output.type} id={output.id} label={output.label ?? output.type} />
        </Group>
      ))}
      {!run.outputs.length && (
        <Text size="sm" c="dimmed">
          {ENDED.includes(run.state) ? "none" : "none yet"}
        </Text>
      )}
    </Stack>
  );
}

function Thing({ type, id, label }: { type: string; id: string | null; label: string }) {
  const project = useProject();
  const size = { size: "sm", style: { overflowWrap: "anywhere", minWidth: 0 } } as const;
  if (!id) return <Text {...size}>{label}</Text>;
  if (type === "model")
    return (
      <Link {...size} to="/p/$project/models/$model" params={{ project, model: id }}>
        {label}
      </Link>
    );
  if (type === "run")
    return (
      <Link {...size} to="/p/$project/runs/$run" params={{ project, run: id }}>
        {label}
      </Link>
    );
  if (["dataset", "rewards", "labelled"].includes(type))
    return (
      <Link {...size} to="/p/$project/datasets/$dataset" params={{ project, dataset: id }}>
        {label}
      </Link>
    );
  return <Text {...size}>{label}</Text>;
}
