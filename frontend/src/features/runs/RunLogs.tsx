import { ScrollArea, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { logsQuery } from "../../api/runs";
import { Empty, Loaded } from "../../shared/Feedback";
import { useProject } from "../../shared/links";

export function RunLogs({ run, live }: { run: string; live: boolean }) {
  const project = useProject();
  const query = useQuery(logsQuery(project, run, live));
  return (
    <Loaded query={query}>
      {(page) =>
        page.items.length ? (
          <ScrollArea.Autosize mah={520} tabIndex={0} role="log" aria-label="Log, the newest line first">
            <Table fz="sm" verticalSpacing={4}>
              <Table.Tbody>
                {page.items.map((line) => (
                  <Table.Tr key={line.id}>
                    <Table.Td w={110} style={{ whiteSpace: "nowrap" }} c="dimmed">
                      {new Date(line.created_at).toLocaleTimeString()}
                    </Table.Td>
                    <Table.Td w={80}>
                      <Text
                        size="sm"
                        c={line.level === "error" ? "red" : line.level === "warning" ? "orange" : "dimmed"}
                      >
                        {line.level}
                      </Text>
                    </Table.Td>
                    <Table.Td ff="monospace">
                      <pre className="text">{line.message}</pre>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea.Autosize>
        ) : (
          <Empty title="Nothing logged">
            {live ? "Lines appear here as the stage writes them." : undefined}
          </Empty>
        )
      }
    </Loaded>
  );
}
