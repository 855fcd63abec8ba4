import { Button, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { DataTable, type Column } from "../tables/DataTable";
import { Facts, type Fact } from "../Facts";
import { count, percent, counted } from "../format/format";
import { Link } from "../links";
import { When } from "../When";

type Result = Schemas["BenchmarkResult"];
type Finished = Schemas["FinishedBenchmark"];
type Estimate = Schemas["Estimate"];
// As RewardBench orders them; JSON from the database has another order.
const SECTIONS = ["Chat", "Chat Hard", "Safety", "Reasoning"];
const DOMAINS = ["Factuality", "Precise IF", "Math", "Safety", "Focus", "Ties"];

/** A share as people read it, with its 95% interval. */
function Share({ of }: { of: Estimate }) {
  return (
    <Text span size="sm" style={{ whiteSpace: "nowrap" }}>
      {percent(of.value)}
      <Text span size="xs" c="dimmed">
        {` ${interval(of)}`}
      </Text>
    </Text>
  );
}

function interval({ low, high }: Estimate): string {
  return low == null || high == null ? "" : `[${percent(low)}, ${percent(high)}]`;
}

function itemsOf(result: Result): string {
  return result.pairs ? counted(result.pairs, "pair") : counted(result.prompts, "prompt");
}

/** All of one benchmark: over all items, the parts of RewardBench and RewardBench 2, and every source. */
export function BenchmarkBody({ result }: { result: Result }) {
  const bench = result.rewardbench;
  const second = result.rewardbench2;
  const facts: Fact[] = [
    ["Accuracy", percent(result.accuracy.value), `${interval(result.accuracy)} of ${itemsOf(result)}`],
    result.pairs
      ? ["Ties", count(result.ties), "neither side ahead, which is lost"]
      : ["Ties at the top", count(result.ties), "answers with the same reward share the prompt"],
  ];
  if (!result.pairs) facts.push(["By guessing", percent(result.chance), "of the prompts"]);
  if (result.left_out) facts.push(["Left out", count(result.left_out), "prompts without a wrong answer"]);
  if (result.flip_rate != null)
    facts.push(["Flips with the order", percent(result.flip_rate), "of the pairs, asked in both orders"]);
  if (result.calibration_error != null)
    facts.push([
      "Calibration error",
      percent(result.calibration_error),
      "between its probability and how often it is right",
    ]);
  if (bench) {
    for (const name of SECTIONS)
      facts.push([
        name,
        percent(bench.sections[name]),
        !(name in bench.sections)
          ? "no pairs"
          : bench.incomplete[name]
            ? "incomplete"
            : "section of RewardBench",
      ]);
    facts.push([
      "RewardBench",
      percent(bench.overall),
      bench.overall === null ? "needs all four sections" : "mean of the sections",
    ]);
  }
  if (second) {
    for (const name of DOMAINS)
      facts.push([
        name,
        percent(second.domains[name]),
        name in second.domains ? "domain of RewardBench 2" : "missing",
      ]);
    facts.push([
      "RewardBench 2",
      percent(second.overall),
      second.overall === null ? "needs all six domains" : "mean of the domains",
    ]);
  }
  return (
    <Stack gap="sm">
      <Facts facts={facts} columns={7} />
      {bench && <LeftOut bench={bench} />}
      {second?.ties && <TiesParts ties={second.ties} />}
      {(result.sources ?? []).length > 0 && <Sources result={result} />}
    </Stack>
  );
}

function LeftOut({ bench }: { bench: NonNullable<Result["rewardbench"]> }) {
  const lines = SECTIONS.filter((name) => name in bench.sections && bench.incomplete[name]).map(
    (name) => `${name} lacks ${bench.incomplete[name]!.join(", ")}.`,
  );
  if (bench.unknown.length) lines.push(`No subset of RewardBench: ${bench.unknown.join(", ")}.`);
  return lines.map((line) => (
    <Text key={line} size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
      {line}
    </Text>
  ));
}

function TiesParts({ ties }: { ties: NonNullable<Schemas["RewardBench2Domains"]["ties"]> }) {
  return (
    <Text size="sm" c="dimmed">
      {`Ties: all right answers ahead in ${percent(ties.tied)} of the prompts with many and ${percent(ties.ref)} ` +
        `of those with one; nearer to each other than to the wrong ones in ${percent(ties.preferred)} of ` +
        `${counted(ties.twins, "twin")}, by the stricter rule in ${percent(ties.preferred_hard)}.`}
    </Text>
  );
}

function Sources({ result }: { result: Result }) {
  const rows = (result.sources ?? []).map((one, at) => ({ ...one, at }));
  const columns: Column<(typeof rows)[number]>[] = [
    { title: "Subset", cell: (one) => one.source ?? <Text size="sm">none named</Text> },
    { title: "Accuracy", right: true, cell: (one) => <Share of={one.accuracy} /> },
    { title: "Ties", right: true, wide: true, cell: (one) => count(one.ties) },
    { title: result.pairs ? "Pairs" : "Prompts", right: true, cell: (one) => count(one.accuracy.n) },
  ];
  return (
    <div>
      <DataTable
        label="Accuracy by subset, the largest first"
        rows={rows}
        columns={columns}
        keyOf={(one) => String(one.at)}
      />
      {!!result.more_sources && (
        <Text size="xs" c="dimmed">
          {count(result.more_sources)} smaller ones are not listed.
        </Text>
      )}
    </div>
  );
}

interface Properties {
  project: string;
  benchmarks: Finished[];
  label: string;
}

/** A row for each benchmark; it unfolds to its subsets. */
export function BenchmarksTable({ project, benchmarks, label }: Properties) {
  const sections = benchmarks.some((one) => one.result.rewardbench);
  const second = benchmarks.some((one) => one.result.rewardbench2);
  const width = 4 + (sections ? SECTIONS.length + 1 : 0) + (second ? 1 : 0);
  return (
    <Table.ScrollContainer minWidth={300}>
      <Table aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Data</Table.Th>
            <Table.Th ta="right">Accuracy</Table.Th>
            {sections &&
              [...SECTIONS, "RewardBench"].map((name) => (
                <Table.Th key={name} ta="right" visibleFrom="sm">
                  {name}
                </Table.Th>
              ))}
            {second && (
              <Table.Th ta="right" visibleFrom="sm">
                RewardBench 2
              </Table.Th>
            )}
            <Table.Th visibleFrom="sm">When</Table.Th>
            <Table.Th>Subsets</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {benchmarks.map((one) => (
            <BenchmarkRow
              key={one.run_id}
              project={project}
              of={one}
              sections={sections}
              second={second}
              width={width}
            />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function BenchmarkRow({
  project,
  of,
  sections,
  second,
  width,
}: {
  project: string;
  of: Finished;
  sections: boolean;
  second: boolean;
  width: number;
}) {
  const [open, setOpen] = useState(false);
  const bench = of.result.rewardbench;
  return (
    <>
      <Table.Tr>
        <Table.Td>
          <Link
            size="sm"
            to="/p/$project/datasets/$dataset"
            params={{ project, dataset: of.dataset_id }}
            style={{ overflowWrap: "anywhere" }}
          >
            {of.dataset}
          </Link>
          <Text size="xs" c="dimmed">
            {itemsOf(of.result)},{" "}
            <Link
              size="xs"
              underline="always"
              to="/p/$project/runs/$run"
              params={{ project, run: of.run_id }}
            >
              its run
            </Link>
          </Text>
        </Table.Td>
        <Table.Td ta="right">
          <Share of={of.result.accuracy} />
        </Table.Td>
        {sections && (
          <>
            {SECTIONS.map((name) => (
              <Table.Td key={name} ta="right" visibleFrom="sm">
                {percent(bench?.sections[name])}
              </Table.Td>
            ))}
            <Table.Td ta="right" visibleFrom="sm" fw={600}>
              {percent(bench?.overall)}
            </Table.Td>
          </>
        )}
        {second && (
          <Table.Td ta="right" visibleFrom="sm" fw={600}>
            {percent(of.result.rewardbench2?.overall)}
          </Table.Td>
        )}
        <Table.Td visibleFrom="sm">
          <When at={of.ended_at} />
        </Table.Td>
        <Table.Td>
          <Button
            size="compact-xs"
            variant="default"
            aria-expanded={open}
            aria-label={`${open ? "Hide" : "Show"} the subsets of ${of.dataset}`}
            onClick={() => setOpen(!open)}
          >
            {open ? "Hide" : "Show"}
          </Button>
        </Table.Td>
      </Table.Tr>
      {open && (
        <Table.Tr>
          <Table.Td colSpan={width}>
            <BenchmarkBody result={of.result} />
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}
