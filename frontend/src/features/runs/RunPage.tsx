import { Alert, Anchor, Code, Grid, Group, Stack, Table, Tabs, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { type RunDetail, runQuery } from "../../api/runs/runs";
import { AcademicBody } from "../../shared/Academic";
import { BenchmarkBody } from "../../shared/Benchmarks";
import { Costs } from "../../shared/costs/Costs";
import { LoadedPage } from "../../shared/Feedback";
import { Link, useProject } from "../../shared/links";
import { Page } from "../../shared/Page";
import { RunProgress } from "../../shared/Progress";
import { ReportBody, type Report } from "../../shared/ReportBody";
import { StateBadge } from "../../shared/StateBadge";
import { inWords } from "../../shared/forms/schemaForm";
import { Findings } from "./Findings";
import { GroupsView } from "./groups/GroupsView";
import { PairsView } from "./pairs/PairsView";
import { ProbesView } from "./probes/ProbesView";
import { RunActions } from "./RunActions";
import { RunCharts } from "./RunCharts";
import { RunFigures } from "./RunFigures";
import { RunLogs } from "./RunLogs";
import { CombinationBody } from "./CombinationBody";
import { SelectionBody } from "./SelectionBody";
import { RunsTable } from "../../shared/tables/RunsTable";
import { When } from "../../shared/When";
import { WithCode } from "../../shared/text/WithCode";
import { Timeline } from "./Timeline";

const route = getRouteApi("/p/$project/runs/$run");
const LEDGER_MS = 10_000;
const UNTIL_IT_ENDS =
  "the attempt that runs counts what its phases took so far, and its idle time when it ends";
export const ENDED = ["succeeded", "failed", "cancelled", "skipped"];

export function RunPage() {
  const { project, run } = route.useParams();
  const query = useQuery({
    ...runQuery(project, run),
    // What its phases take moves on without an event.
    refetchInterval: ({ state }) => (state.data?.state === "running" ? LEDGER_MS : false),
  });
  return (
    <LoadedPage
      title="Run"
      query={query}
      others={
        <Link to="/p/$project/runs" params={{ project }} search={{}}>
          All runs
        </Link>
      }
    >
      {(data) => <RunView key={data.id} run={data} />}
    </LoadedPage>
  );
}

function RunView({ run }: { run: RunDetail }) {
  const project = useProject();
  const live = !ENDED.includes(run.state);
  const bad = run.state === "failed";
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const report = run.outputs.find((output) => output.type === "report")?.document as Report | undefined;
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
  const parts = run.kind === "evaluate" ? "Parts" : "Shards";
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
      : bad
        ? "life"
        : run.kind === "train"
          ? "charts"
          : "log";
  const open = tabs.some(([name]) => name === tab) ? tab! : first;
  return (
    <Page
      title={run.name}
      tab={run.pipeline ? `${run.name} · ${run.pipeline.name}` : undefined}
      beside={<StateBadge state={run.state} />}
      about={
        <>
          {run.method ?? run.kind} in pool {run.pool}
          {run.pipeline && (
            <>
              , part of{" "}
              <Link
                underline="always"
                to="/p/$project/pipelines/$pipeline"
                params={{ project, pipeline: run.pipeline.name }}
                size="sm"
              >
                {run.pipeline.name}
              </Link>
            </>
          )}
          {typeof run.config.evaluation === "string" && (
            <>
              , for an{" "}
              <Anchor
                underline="always"
                size="sm"
                href={`/p/${project}/evaluations/${run.config.evaluation}`}
              >
                evaluation
              </Anchor>
            </>
          )}
          , launched by {run.created_by} <When at={run.created_at} />
          {live && run.reason && (
            <>
              ; <WithCode text={run.reason} />
            </>
          )}
          {run.queue_position && (
            <>
              , place {run.queue_position} in{" "}
              <Link underline="always" size="sm" to="/p/$project/queue" params={{ project }}>
                the queue
              </Link>
            </>
          )}
        </>
      }
      actions={<RunActions run={run} />}
    >
      {run.reason && !live && run.state !== "succeeded" && (
        <Alert
          color={bad ? "red" : "gray"}
          variant="light"
          title={bad ? `Failed: ${run.reason_code ?? "unknown"}` : undefined}
        >
          <pre className="text">
            <WithCode text={run.reason} />
          </pre>
          {typeof run.error?.hint === "string" && (
            <Text size="sm" mt="xs">
              <WithCode text={run.error.hint} />
            </Text>
          )}
        </Alert>
      )}
      <Findings run={run} />
      <RunProgress run={run} />
      <Grid>
        <Grid.Col span={{ base: 12, md: 8 }}>
          <RunFigures run={run} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Things run={run} />
        </Grid.Col>
      </Grid>
      <RunCosts run={run} />
      <Tabs
        value={open}
        keepMounted={false}
        onChange={(name) =>
          name && void navigate({ search: { tab: name }, replace: true, resetScroll: false })
        }
      >
        <Tabs.List>
          {tabs.map(([name, label]) => (
            <Tabs.Tab key={name} value={name}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {reported && (
          <Tabs.Panel value="report" pt="md">
            <ReportBody report={reported} />
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
          <RunCharts run={run.id} live={live} kind={run.kind} />
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
          <Config run={run} />
        </Tabs.Panel>
        <Tabs.Panel value="shards" pt="md">
          <RunsTable runs={run.shards} label={`${parts} of ${run.name}`} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** Where the device time went. Nothing before the first word of the stage. */
function RunCosts({ run }: { run: RunDetail }) {
  if (!run.ledger.phases.length && !run.ledger.failed_attempts) return null;
  const goesOn = run.attempts.some((attempt) => !attempt.ended_at);
  return (
    <section>
      <Title order={2} size="h6" mb={4}>
        Cost
      </Title>
      <Costs
        costs={[{ label: run.name, ledger: run.ledger, about: goesOn ? UNTIL_IT_ENDS : undefined }]}
        label={`Cost of ${run.name} by phase`}
      />
    </section>
  );
}

function Things({ run }: { run: RunDetail }) {
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

function Config({ run }: { run: RunDetail }) {
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
