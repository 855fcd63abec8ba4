import { Button, Center, ScrollArea, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useLayoutEffect, useRef } from "react";
import { logsQuery } from "../../../api/runs/runs";
import { Empty, Loaded } from "../../../shared/Feedback";
import { useProject } from "../../../shared/links";

/** The log as a terminal shows it: its end in view, and following it until someone scrolls up. */
export function RunLogs({ run, live }: { run: string; live: boolean }) {
  const project = useProject();
  const query = useInfiniteQuery(logsQuery(project, run, live));
  const lines = (query.data?.pages ?? []).flatMap((page) => page.items).reverse();
  const viewport = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const last = lines.at(-1)?.id;
  useLayoutEffect(() => {
    const box = viewport.current;
    if (box && follows.current) box.scrollTop = box.scrollHeight;
  }, [last]);
  return (
    <Loaded query={query}>
      {() =>
        lines.length ? (
          <ScrollArea.Autosize
            mah={520}
            tabIndex={0}
            role="log"
            aria-label="Log, the newest line last"
            viewportRef={viewport}
            onScrollPositionChange={({ y }) => {
              const box = viewport.current;
              follows.current = !box || y + box.clientHeight > box.scrollHeight - 24;
            }}
          >
            {query.hasNextPage && (
              <Center py="xs">
                <Button
                  size="xs"
                  variant="default"
                  loading={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  Earlier lines
                </Button>
              </Center>
            )}
            <Table fz="sm" verticalSpacing={4}>
              <Table.Tbody>
                {lines.map((line) => (
                  <Table.Tr key={line.id}>
                    <Table.Td
                      w={110}
                      visibleFrom="sm"
                      style={{ whiteSpace: "nowrap", verticalAlign: "top" }}
                      c="dimmed"
                      title={new Date(line.created_at).toLocaleString()}
                    >
                      {new Date(line.created_at).toLocaleTimeString()}
                    </Table.Td>
                    <Table.Td w={80} visibleFrom="sm" style={{ verticalAlign: "top" }}>
                      <Text
                        size="sm"
                        c={line.level === "error" ? "red" : line.level === "warning" ? "orange" : "dimmed"}
                      >
                        {line.level}
                      </Text>
                    </Table.Td>
                    <Table.Td ff="monospace">
                      <Text size="xs" c="dimmed" hiddenFrom="sm">
                        {new Date(line.created_at).toLocaleTimeString()} {line.level}
                      </Text>
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
