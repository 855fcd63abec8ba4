import { Stack, Tabs } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { ENDED, type RunDetail } from "../../../api/runs/runs";
import { AcademicBody } from "../../../shared/report/Academic";
import { BenchmarkBody } from "../../../shared/report/Benchmarks";
import { useProject } from "../../../shared/links";
import { ReportBody } from "../../../shared/report/ReportBody";
import { RunsCurves } from "../../../shared/curves/RunsCurves";
import { RunsTable } from "../../../shared/tables/RunsTable";
import { GroupsView } from "../groups/GroupsView";
import { PairsView } from "../pairs/PairsView";
import { ProbesView } from "../probes/ProbesView";
import { CombinationBody } from "./CombinationBody";
import { RunConfig } from "./RunConfig";
import { RunLogs } from "./RunLogs";
import { SelectionBody } from "./SelectionBody";
import { Timeline } from "./Timeline";

/** What a run found, drew and wrote, and how it went. `chosen`: the tab that the address names. */
export function RunTabs({
  run,
  chosen,
  onChoose,
}: {
  run: RunDetail;
  chosen: string | undefined;
  onChoose: (name: string) => void;
}) {
  const project = useProject();
  const live = !ENDED.includes(run.state);
  const trains = run.method !== null;
  const report = run.outputs.find((output) => output.type === "report")?.document as
    Schemas["EvaluationReport"] | undefined;
  const reported = report?.methods?.length ? report : undefined;
  const benchmark = run.outputs.find((output) => output.type === "benchmark")?.document as
    Schemas["BenchmarkResult"] | undefined;
  const academic = run.outputs.find((output) => output.type === "academic")?.document as
    Schemas["AcademicResult"] | undefined;
  const selection = run.outputs.find((output) => output.type === "selection")?.document as
    Schemas["SelectionResult"] | undefined;
  // A run that has not succeeded may have those of its newest evaluation.
  const inspected =
    run.outputs.some((output) => output.type === "pairs") ||
    (!!run.config.inspect_pairs && run.state !== "succeeded");
  const combination = run.outputs.find((output) => output.type === "combination")?.document as
    Schemas["CombinationResult"] | undefined;
  const parts = run.shards.some((one) => one.shard === null) ? "Parts" : "Shards";
  // A run in shards logs no metrics of its own; its shards may have run on several devices.
  const shards = run.shards.filter((one) => one.shard !== null);
  const charted = shards.length && !trains ? shards : [run];
  const tabs = [
    ...(benchmark ? [["benchmark", "Result"]] : []),
    ...(academic ? [["academic", "Result"]] : []),
    ...(selection ? [["selection", "Selection"]] : []),
    ...(combination ? [["combination", "Combination"]] : []),
    ...(reported ? [["report", "Report"]] : []),
    ["charts", "Charts"],
    ...(run.config.probe ? [["samples", "Samples"]] : []),
    ...(run.config.inspect_groups ? [["groups", "Groups"]] : []),
    ...(inspected ? [["pairs", "Pairs"]] : []),
    ["log", "Log"],
    ["life", "Timeline"],
    ["config", "Config"],
    ...(run.shards.length > 0 ? [["shards", parts]] : []),
  ] as [string, string][];
  // What one wants to see of a run that draws no curves, or drew its last.
  const first =
    (benchmark ?? academic ?? selection ?? combination ?? reported)
      ? tabs[0]![0]
      : run.state === "failed"
        ? "life"
        : trains || run.kind === "history"
          ? "charts"
          : "log";
  const open = tabs.some(([name]) => name === chosen) ? chosen! : first;
  return (
    <Tabs value={open} keepMounted={false} onChange={(name) => name && onChoose(name)}>
      <Tabs.List>
        {tabs.map(([name, label]) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {reported && (
        <Tabs.Panel value="report" pt="md">
          <Stack gap="lg">
            <ReportBody report={reported} project={project} />
          </Stack>
        </Tabs.Panel>
      )}
      {benchmark && (
        <Tabs.Panel value="benchmark" pt="md">
          <BenchmarkBody result={benchmark} />
        </Tabs.Panel>
      )}
      {academic && (
        <Tabs.Panel value="academic" pt="md">
          <AcademicBody result={academic} />
        </Tabs.Panel>
      )}
      {selection && (
        <Tabs.Panel value="selection" pt="md">
          <SelectionBody result={selection} />
        </Tabs.Panel>
      )}
      {combination && (
        <Tabs.Panel value="combination" pt="md">
          <CombinationBody result={combination} />
        </Tabs.Panel>
      )}
      <Tabs.Panel value="charts" pt="md">
        <RunsCurves
          project={project}
          runs={charted}
          labels={charted.map((one) => one.name)}
          colors={charted.map((_, at) => at)}
        />
      </Tabs.Panel>
      {!!run.config.probe && (
        <Tabs.Panel value="samples" pt="md">
          <ProbesView project={project} run={run.id} live={live} />
        </Tabs.Panel>
      )}
      {!!run.config.inspect_groups && (
        <Tabs.Panel value="groups" pt="md">
          <GroupsView
            project={project}
            run={run.id}
            live={live}
            most={run.config.inspect_group_steps as number | undefined}
          />
        </Tabs.Panel>
      )}
      {inspected && (
        <Tabs.Panel value="pairs" pt="md">
          <PairsView project={project} run={run.id} live={live} />
        </Tabs.Panel>
      )}
      <Tabs.Panel value="log" pt="md">
        <RunLogs run={run.id} live={live} />
      </Tabs.Panel>
      <Tabs.Panel value="life" pt="md">
        <Timeline run={run} />
      </Tabs.Panel>
      <Tabs.Panel value="config" pt="md">
        <RunConfig run={run} />
      </Tabs.Panel>
      <Tabs.Panel value="shards" pt="md">
        <RunsTable runs={run.shards} label={`${parts} of ${run.name}`} />
      </Tabs.Panel>
    </Tabs>
  );
}
