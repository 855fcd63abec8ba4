import { Badge, Group, NumberInput, Select, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { type Judge, type Verdict, verdictsQuery, type VerdictStatus } from "../../../api/evaluation/judges";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Loaded } from "../../../shared/Feedback";
import { Link } from "../../../shared/links";
import { More } from "../../../shared/More";
import { verdictText } from "../verdictText";

const route = getRouteApi("/p/$project/evaluations/$evaluation");
const STATUSES: { value: VerdictStatus; label: string; color: string }[] = [
  { value: "ok", label: "parsed", color: "teal" },
  { value: "unparsed", label: "unparsed", color: "orange" },
  { value: "refused", label: "refused", color: "orange" },
  { value: "error", label: "error", color: "red" },
];

/** Every verdict with what the judge wrote. */
export function Verdicts({
  project,
  evaluation,
  judge,
}: {
  project: string;
  evaluation: Evaluation;
  judge: Judge;
}) {
  const { status } = route.useSearch();
  const navigate = route.useNavigate();
  const [position, setPosition] = useState<number | undefined>();
  const chosen = STATUSES.find((one) => one.value === status)?.value;
  const query = useInfiniteQuery(
    verdictsQuery(project, evaluation.id, judge.id, { status: chosen, position }),
  );
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Select
          size="xs"
          aria-label="Status"
          placeholder="any status"
          data={STATUSES.map(({ value, label }) => ({ value, label }))}
          value={chosen ?? null}
          clearable
          onChange={(value) =>
            void navigate({
              search: (known) => ({ ...known, status: value ?? undefined }),
              replace: true,
              resetScroll: false,
            })
          }
        />
        <NumberInput
          size="xs"
          aria-label="Prompt"
          placeholder="any prompt"
          min={1}
          max={evaluation.prompts}
          allowDecimal={false}
          w={120}
          onChange={(value) => setPosition(typeof value === "number" && value >= 1 ? value - 1 : undefined)}
        />
      </Group>
      <Loaded query={query} rows={3}>
        {() =>
          items.length ? (
            <DataTable
              label={`Verdicts of ${judge.name}`}
              rows={items}
              columns={COLUMNS}
              keyOf={(one) => String(one.id)}
              below={(one) => <Raw verdict={one} />}
            />
          ) : (
            <Text size="sm" c="dimmed">
              {status || position !== undefined ? "No matching verdicts." : "No verdicts yet."}
            </Text>
          )
        }
      </Loaded>
      <More query={query} />
    </Stack>
  );
}

const COLUMNS: Column<Verdict>[] = [
  {
    title: "Prompt",
    cell: (one) => (
      <>
        <Link
          size="sm"
          from={route.id}
          to="."
          search={{
            tab: "items",
            a: one.b === null ? undefined : one.a,
            b: one.b ?? undefined,
            item: one.position,
          }}
        >
          {one.position + 1}
        </Link>
        {one.turn > 1 ? `, turn ${one.turn}` : ""}
      </>
    ),
  },
  {
    title: "About",
    cell: (one) => (
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {one.b === null
          ? one.a
          : one.a_first === false
            ? `${one.a} vs ${one.b} (${one.b} first)`
            : `${one.a} vs ${one.b}`}
      </Text>
    ),
  },
  {
    title: "Verdict",
    cell: (one) => {
      const look = STATUSES.find((known) => known.value === one.status)!;
      return (
        <Group gap={6}>
          {one.value === null ? (
            <Badge color={look.color} className="state-badge">
              {look.label}
            </Badge>
          ) : (
            verdictText(one)
          )}
          {one.superseded && <Badge color="gray">superseded</Badge>}
        </Group>
      );
    },
  },
  { title: "What it wrote", wide: true, cell: (one) => <Raw verdict={one} /> },
];

function Raw({ verdict }: { verdict: Verdict }) {
  const text = verdict.raw?.trim();
  return (
    <Stack gap={2} maw={560}>
      {verdict.detail && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {verdict.detail}
        </Text>
      )}
      {text &&
        (text.length > 160 ? (
          <details>
            <summary className="evaluation-summary">{text.slice(0, 150)}…</summary>
            <pre className="text">{text}</pre>
          </details>
        ) : (
          <pre className="text">{text}</pre>
        ))}
      {verdict.cut && (
        <Text size="xs" c="dimmed">
          Only the beginning is shown; the export of the verdicts has all of it.
        </Text>
      )}
    </Stack>
  );
}
