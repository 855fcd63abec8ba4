import { Anchor, Code, Stack, Table, Text } from "@mantine/core";
import type { RunDetail } from "../../../api/runs/runs";
import { inWords } from "../../../shared/forms/valueText";
import { Link, useProject } from "../../../shared/links";

export function RunConfig({ run }: { run: RunDetail }) {
  const project = useProject();
  return (
    <Stack>
      <Table aria-label="Config" maw={720}>
        <Table.Tbody>
          {Object.entries(run.config)
            .sort(([a], [b]) => a.localeCompare(b))
            .map(([name, value]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" w={240} fw={500}>
                  {name}
                </Table.Th>
                <Table.Td style={{ overflowWrap: "anywhere" }}>
                  {inWords(value) === "none" ? (
                    <Text size="sm" c="dimmed">
                      none
                    </Text>
                  ) : (
                    <Code style={{ display: "inline-block", whiteSpace: "pre-line" }}>{inWords(value)}</Code>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
      {run.reused_from_id && (
        <Text size="sm">
          An identical run had already finished, so its outputs were reused:{" "}
          <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: run.reused_from_id }}>
            the run that did the work
          </Link>
        </Text>
      )}
      <Anchor size="sm" href={`/api/v1/projects/${project}/runs/${run.id}`}>
        This run as JSON
      </Anchor>
    </Stack>
  );
}
