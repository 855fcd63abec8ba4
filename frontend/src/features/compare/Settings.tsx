import { Code, Group, Switch, Table, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { metricsQuery } from "../../api/runs/runs";
import { deviceTime } from "../../shared/format/runTime";
import { useState } from "react";
import { figuresOf } from "../../shared/format/figures";
import { result, seconds } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { RunBadge } from "../../shared/StateBadge";
import type { Compared } from "./compared";
import { differences } from "./differences";

/** The results and settings in which the runs differ, or all of them. */
export function Settings({ project, runs, labels }: Compared) {
  const [all, setAll] = useState(false);
  const soFar = useLatest(project, runs);
  const rows = differences(
    runs.map((run) => ({
      ...run.config,
      ...Object.fromEntries(run.inputs.map((input) => [`input ${input.name}`, input.label])),
    })),
    all,
    runs.map((run) =>
      Object.fromEntries(run.inputs.map((input) => [`input ${input.name}`, input.content ?? input.label])),
    ),
  );
  const valueOf = (run: Compared["runs"][number], name: string) =>
    run.summary?.[name] ?? soFar.get(run.id)?.get(name);
  const results = [
    ...new Set(
      runs.flatMap((run) =>
        figuresOf(run.summary ?? {})
          .filter(([, value]) => typeof value === "number")
          .map(([name]) => name),
      ),
    ),
  ].filter((name) => all || runs.length === 1 || new Set(runs.map((run) => valueOf(run, name))).size > 1);
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          Results and settings
        </Title>
        <Switch
          label="Show equal values too"
          checked={all}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
      </Group>
      <Table.ScrollContainer minWidth={480}>
        <Table aria-label="Settings and results of the runs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{""}</Table.Th>
              {runs.map((run, at) => (
                <Table.Th key={run.id}>
                  <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: run.id }}>
                    {labels[at]}
                  </Link>
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            <Table.Tr>
              <Table.Th scope="row">state</Table.Th>
              {runs.map((run) => (
                <Table.Td key={run.id}>
                  <RunBadge run={run} />
                </Table.Td>
              ))}
            </Table.Tr>
            <Table.Tr>
              <Table.Th scope="row">device time</Table.Th>
              {runs.map((run) => (
                <Table.Td key={run.id}>{seconds(deviceTime(run))}</Table.Td>
              ))}
            </Table.Tr>
            {results.map((name) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name.replaceAll("_", " ")}</Table.Th>
                {runs.map((run) => {
                  const value = valueOf(run, name);
                  return (
                    <Table.Td key={run.id}>
                      {typeof value === "number" ? result(name, value) : "–"}
                      {typeof value === "number" && !run.summary && (
                        <Text span size="xs" c="dimmed">
                          {" "}
                          so far
                        </Text>
                      )}
                    </Table.Td>
                  );
                })}
              </Table.Tr>
            ))}
            <Table.Tr>
              <Table.Th colSpan={runs.length + 1} scope="rowgroup" pt="lg">
                {all ? "Settings" : rows.length ? "Settings that differ" : "No settings differ"}
              </Table.Th>
            </Table.Tr>
            {rows.map((row) => (
              <Table.Tr key={row.name}>
                <Table.Th scope="row">{row.name}</Table.Th>
                {row.values.map((value, at) => (
                  <Table.Td key={at}>
                    <Code
                      color={row.differs ? "yellow.1" : undefined}
                      c={row.differs ? "dark.9" : undefined}
                      style={{ display: "inline-block", whiteSpace: "pre-line" }}
                    >
                      {value}
                    </Code>
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </section>
  );
}

/** The latest metrics of the runs that have no results yet, by run and name. */
function useLatest(project: string, runs: Compared["runs"]): Map<string, Map<string, number>> {
  const open = runs.filter((run) => !run.summary && run.started_at);
  const metrics = useQueries({
    queries: open.map((run) => metricsQuery(project, run.id, run.state === "running")),
  });
  return new Map(
    open.map((run, at) => [
      run.id,
      new Map(
        (metrics[at]!.data ?? []).flatMap(({ name, points }) =>
          points.length ? [[name, points.at(-1)!.value] as const] : [],
        ),
      ),
    ]),
  );
}
