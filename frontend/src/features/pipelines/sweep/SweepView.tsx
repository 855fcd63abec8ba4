import { Badge, Card, Group, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { sweepQuery } from "../../../api/runs/pipelines";
import type { Run } from "../../../api/runs/runs";
import { Loaded } from "../../../shared/Feedback";
import { seconds, short, counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { StateBadge } from "../../../shared/StateBadge";
import { Findings } from "../Findings";
import { written } from "./axes";
import { ParallelCoordinates } from "./ParallelCoordinates";

type Sweep = Schemas["SweepReport"];
type Variant = Schemas["VariantRow"];

/** What a sweep found: the best and what is within noise of it, every variant as a line and as a row. */
export function SweepView({ project, pipeline, runs }: { project: string; pipeline: string; runs: Run[] }) {
  const query = useQuery(sweepQuery(project, pipeline));
  const [shown, show] = useState<number | null>(null);
  return (
    <Loaded query={query}>
      {(sweep) => (
        <Findings
          project={project}
          pipeline={pipeline}
          what="sweep"
          verdict={sweep.verdict}
          about={about(sweep)}
          notes={sweep.notes}
        >
          <Card withBorder p="sm">
            <ParallelCoordinates sweep={sweep} shown={shown} onShow={show} />
            {sweep.best !== null && <Legend sweep={sweep} />}
          </Card>
          <div>
            <Title order={2} size="h4" mb={4}>
              Variants
            </Title>
            <Variants project={project} sweep={sweep} runs={runs} shown={shown} onShow={show} />
          </div>
        </Findings>
      )}
    </Loaded>
  );
}

function about(sweep: Sweep): string {
  const how = sweep.search === "grid" ? "every combination" : `drawn at random with seed ${sweep.seed}`;
  const by =
    sweep.compared_by === "prompts"
      ? ` Variants are compared on the same ${counted(sweep.prompts, "prompt")}: Wilcoxon's test on their differences, with Holm's correction over all pairs.`
      : sweep.compared_by === "intervals"
        ? " Variants whose 95% intervals overlap count as within noise."
        : "";
  return `${sweep.variants.length} variants of ${sweep.fields.join(", ")}: ${how}. ${sweep.metric} decides.${by}${sweep.halving ? ` ${sweep.halving}` : ""}`;
}

function Legend({ sweep }: { sweep: Sweep }) {
  const known = sweep.compared_by !== null;
  const entries: [number, string][] = known
    ? [
        [2, "the best"],
        [1, "within noise of it"],
        [0, "worse"],
      ]
    : [
        [2, "the best"],
        [0, "others"],
      ];
  return (
    <Group gap="md" mt={4}>
      {entries.map(([level, name]) => (
        <Group key={level} gap={6} wrap="nowrap">
          <svg width={24} height={8} aria-hidden>
            <polyline className="variant-line" data-level={level} points="0,4 24,4" />
          </svg>
          <Text size="xs" c="dimmed">
            {name}
          </Text>
        </Group>
      ))}
    </Group>
  );
}

function Variants({
  project,
  sweep,
  runs,
  shown,
  onShow,
}: {
  project: string;
  sweep: Sweep;
  runs: Run[];
  shown: number | null;
  onShow: (variant: number | null) => void;
}) {
  const ids = new Map(runs.map((run) => [run.name.split(".").at(-1) ?? run.name, run.id]));
  const unit = sweep.units ? ` (${sweep.units})` : "";
  return (
    <Table.ScrollContainer minWidth={560 + 110 * sweep.fields.length}>
      <Table aria-label="Variants with settings, figure, interval and cost">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Variant</Table.Th>
            {sweep.fields.map((field) => (
              <Table.Th key={field} ta="right">
                {field}
              </Table.Th>
            ))}
            {sweep.halving && <Table.Th ta="right">{sweep.halving_figure} by rung</Table.Th>}
            <Table.Th ta="right">
              {sweep.figure}
              {unit}
            </Table.Th>
            <Table.Th ta="right">Behind the best</Table.Th>
            <Table.Th ta="right">Device time</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {ranked(sweep).map((variant) => (
            <Table.Tr
              key={variant.number}
              onMouseEnter={() => onShow(variant.number)}
              onMouseLeave={() => onShow(null)}
              bg={variant.number === shown ? "var(--mantine-color-default-hover)" : undefined}
            >
              <Table.Td>
                <Group gap="xs" wrap="nowrap">
                  <Text size="sm" fw={550}>
                    {variant.number}
                  </Text>
                  <Stage project={project} name={variant.stage} id={ids.get(variant.stage)} />
                  <Standing sweep={sweep} variant={variant} />
                </Group>
              </Table.Td>
              {sweep.fields.map((field) => (
                <Table.Td key={field} ta="right" style={{ overflowWrap: "anywhere" }}>
                  {written(variant.values[field])}
                </Table.Td>
              ))}
              {sweep.halving && (
                <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                  {variant.rungs.map((one) => (one.figure == null ? "–" : short(one.figure))).join(" · ")}
                </Table.Td>
              )}
              <Table.Td ta="right">
                <Estimate found={variant.figure} strong />
              </Table.Td>
              <Table.Td ta="right">
                <Estimate found={variant.behind} />
              </Table.Td>
              <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                {seconds(variant.device_seconds)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Stage({ project, name, id }: { project: string; name: string; id: string | undefined }) {
  if (!id) return <Text size="xs">{name}</Text>;
  return (
    <Link size="xs" style={{ whiteSpace: "nowrap" }} to="/p/$project/runs/$run" params={{ project, run: id }}>
      {name}
    </Link>
  );
}

function Standing({ sweep, variant }: { sweep: Sweep; variant: Variant }) {
  if (variant.number === sweep.best)
    return (
      <Badge variant="filled" miw="max-content">
        best
      </Badge>
    );
  if (variant.within_noise)
    return (
      <Badge variant="default" miw="max-content">
        within noise
      </Badge>
    );
  if (variant.dropped_after !== null)
    return (
      <Badge variant="default" miw="max-content" title={variant.reason ?? undefined}>
        dropped after rung {variant.dropped_after}
        {variant.dropped_within_noise && ", within noise"}
      </Badge>
    );
  return variant.figure ? null : <StateBadge state={variant.state} />;
}

function Estimate({ found, strong }: { found?: Schemas["Estimate"] | null; strong?: boolean }) {
  if (found?.value == null) return <>–</>;
  return (
    <>
      <Text size="sm" fw={strong ? 600 : undefined} style={{ whiteSpace: "nowrap" }}>
        {short(found.value).replace("-", "−")}
      </Text>
      {found.low != null && found.high != null && (
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          {short(found.low).replace("-", "−")} to {short(found.high).replace("-", "−")}
        </Text>
      )}
    </>
  );
}

/** The best first; those without a figure last, by number. */
function ranked(sweep: Sweep): Variant[] {
  const sign = sweep.goal === "maximize" ? -1 : 1;
  const key = (variant: Variant) => (variant.figure?.value == null ? Infinity : sign * variant.figure.value);
  return [...sweep.variants].sort((a, b) => {
    const [one, other] = [key(a), key(b)];
    return one === other ? a.number - b.number : one - other;
  });
}
