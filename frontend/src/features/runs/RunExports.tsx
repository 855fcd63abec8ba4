import { Anchor, Button, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMay } from "../../api/accounts/session";
import { exportRun, exportsQuery, KINDS } from "../../api/accounts/trackers";
import type { Schemas } from "../../api/client";
import { ENDED, type RunDetail } from "../../api/runs/runs";
import { Failure } from "../../shared/Feedback";
import { useProject } from "../../shared/links";
import { When } from "../../shared/When";

/** Where the run is exported to, and how far. */
export function RunExports({ run }: { run: RunDetail }) {
  const project = useProject();
  const found = useQuery(exportsQuery(project, run.id, !ENDED.includes(run.state)));
  if (!found.data?.length) return null;
  return (
    <Stack gap={4} mt="md" role="list" aria-label="Trackers">
      <Title order={2} size="h6">
        Trackers
      </Title>
      {found.data.map((one) => (
        <Export key={one.tracker} project={project} run={run} found={one} />
      ))}
    </Stack>
  );
}

function Export({
  project,
  run,
  found,
}: {
  project: string;
  run: RunDetail;
  found: Schemas["RunExportOut"];
}) {
  const client = useQueryClient();
  const mayRun = useMay(project, "run");
  const again = useMutation({
    mutationFn: () => exportRun(project, found.tracker, run.id),
    onSettled: () => client.invalidateQueries({ queryKey: exportsQuery(project, run.id, false).queryKey }),
  });
  const name = `${KINDS[found.kind]} (${found.tracker})`;
  return (
    <div role="listitem">
      {found.link ? (
        <Anchor size="sm" href={found.link} target="_blank" rel="noreferrer" underline="always">
          {name}
        </Anchor>
      ) : (
        <Text size="sm">{name}</Text>
      )}
      {found.folder && (
        <Code block style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
          {found.folder}
        </Code>
      )}
      <Text size="sm" c="dimmed" component="div">
        {found.last_export_at ? (
          <>
            {found.step !== null && `Up to step ${found.step}, `}last export{" "}
            <When at={found.last_export_at} />
          </>
        ) : (
          "Nothing has been exported yet."
        )}
      </Text>
      {found.last_error && (
        <Group gap="xs" align="flex-start">
          <Text size="sm" c="red" style={{ overflowWrap: "anywhere" }}>
            {found.last_error}
          </Text>
          {mayRun && found.active && (
            <Button
              size="compact-xs"
              variant="default"
              loading={again.isPending}
              onClick={() => again.mutate()}
            >
              Try again now
            </Button>
          )}
        </Group>
      )}
      {again.error && <Failure error={again.error} />}
    </div>
  );
}
