import { Group, Select, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Problem, type Schemas } from "../../api/client";
import { modelsQuery, pairedBenchmarksQuery } from "../../api/models/models";
import { Loaded } from "../../shared/Feedback";
import { count, percent, points, counted } from "../../shared/format/format";
import { useByName } from "../../shared/forms/useByName";
import { pValue } from "../../shared/report/Figure";
import { type Column, DataTable } from "../../shared/tables/DataTable";

type Paired = Schemas["PairedBenchmark"];
interface Row {
  key: string;
  title: string;
  share: Schemas["PairedShare"];
}

/** The model against another one, on the items that both were benchmarked on. */
export function PairedBenchmarks({ project, model }: { project: string; model: string }) {
  const [other, setOther] = useState<string | null>(null);
  const models = useByName((name) => modelsQuery(project, { name, role: ["reward", "preference"] }), {
    chosen: [other],
  });
  const query = useQuery({ ...pairedBenchmarksQuery(project, model, other ?? ""), enabled: other !== null });
  const refused = query.error instanceof Problem && query.error.status === 409 ? query.error : null;
  return (
    <Stack gap="sm" mt="md">
      <Select
        label="Compare with"
        placeholder="another reward model"
        data={(models.data ?? []).map((one) => one.name).filter((name) => name !== model)}
        onSearchChange={models.onSearchChange}
        value={other}
        onChange={setOther}
        clearable
        searchable
        maw={320}
      />
      {refused && (
        <Text size="sm" c="dimmed">
          {refused.message}. {refused.hint}
        </Text>
      )}
      {other && !refused && (
        <Loaded query={query} rows={3}>
          {(found) => found.map((one) => <PairedTable key={one.dataset_id} of={one} />)}
        </Loaded>
      )}
    </Stack>
  );
}

function PairedTable({ of }: { of: Paired }) {
  const rows: Row[] = [
    ...(of.overall ? [{ key: "overall", title: "RewardBench", share: of.overall }] : []),
    { key: "all", title: "All items", share: of.every },
    ...of.sections.map((share) => ({ key: `section ${share.name}`, title: share.name ?? "", share })),
    ...of.subsets.map((share) => ({
      key: `subset ${share.name}`,
      title: share.name ?? "no subset named",
      share,
    })),
  ];
  const columns: Column<Row>[] = [
    { title: "Items of", cell: ({ title }) => <Text size="sm">{title}</Text> },
    { title: of.a.model, right: true, wide: true, cell: ({ share }) => percent(share.a) },
    { title: of.b.model, right: true, wide: true, cell: ({ share }) => percent(share.b) },
    { title: "Only the first is right", right: true, wide: true, cell: ({ share }) => count(share.only_a) },
    { title: "Only the second is right", right: true, wide: true, cell: ({ share }) => count(share.only_b) },
    { title: "Difference", right: true, cell: ({ share }) => <Difference of={share.difference} /> },
    { title: "p", right: true, cell: ({ share }) => pValue(share.p_holm ?? share.p) },
  ];
  return (
    <section>
      <Group gap="xs" align="baseline">
        <Title order={3} size="h6">
          {of.a.model} against {of.b.model} on {of.dataset}
        </Title>
        <Text size="xs" c="dimmed">
          {of.every.n < of.items
            ? `${count(of.every.n)} of ${counted(of.items, "item")}`
            : counted(of.items, "item")}
        </Text>
      </Group>
      <DataTable
        label={`${of.a.model} against ${of.b.model} on ${of.dataset}`}
        rows={rows}
        columns={columns}
        keyOf={({ key }) => key}
        below={({ share }) => `${percent(share.a)} against ${percent(share.b)}`}
      />
      <Text size="xs" c="dimmed">
        Differences are in points of 100, with the 95% interval for the same items. p is McNemar&apos;s exact
        test, after Holm&apos;s correction for subsets, and for sections a test of the weighted sum. Intervals
        are not corrected.
      </Text>
    </section>
  );
}

function Difference({ of: { value, low, high } }: { of: Schemas["Estimate"] }) {
  return (
    <Text span size="sm">
      {points(value)}
      <Text size="xs" c="dimmed" component="div" style={{ whiteSpace: "nowrap" }}>
        [{points(low)}, {points(high)}]
      </Text>
    </Text>
  );
}
