import { ActionIcon, Badge, Box, Group, NumberInput, Table, Text } from "@mantine/core";
import { IconArrowBarToUp, IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import type { QueuedRun } from "../../api/runs/queue";
import { useNow } from "../../shared/format/clock";
import { seconds } from "../../shared/format/format";
import { runName } from "../../shared/format/runName";
import { Link, useProject } from "../../shared/links";
import { When } from "../../shared/When";
import { PartOf } from "./PartOf";

interface Properties {
  run: QueuedRun;
  queue: Schemas["QueueOut"];
  /** Between two attempts. */
  paused: boolean;
  movable: boolean;
  first: boolean;
  last: boolean;
  /** Where a row that is dragged over this one would go. */
  mark: "above" | "below" | null;
  onBy: (by: -1 | 1 | "first") => void;
  onPriority: (priority: number) => void;
  onDrag: () => void;
  onOver: () => void;
  onDrop: () => void;
  onDragEnd: () => void;
}

export function WaitingRun({ run, queue, paused, movable, first, last, mark, ...on }: Properties) {
  const project = useProject();
  const moves = movable && !paused;
  const line = "2px var(--mantine-primary-color-filled)";
  const arrows = moves && (
    <Group gap={2} wrap="nowrap">
      <Arrow label={`Move ${run.name} up`} off={first} onClick={() => on.onBy(-1)}>
        <IconArrowUp size={16} />
      </Arrow>
      <Arrow label={`Move ${run.name} down`} off={last} onClick={() => on.onBy(1)}>
        <IconArrowDown size={16} />
      </Arrow>
      <Arrow label={`Move ${run.name} to the top`} off={first} onClick={() => on.onBy("first")}>
        <IconArrowBarToUp size={16} />
      </Arrow>
    </Group>
  );
  return (
    <Table.Tr
      data-run={run.name}
      tabIndex={moves ? 0 : undefined}
      draggable={moves}
      style={{
        cursor: moves ? "grab" : undefined,
        boxShadow: mark ? `inset 0 ${mark === "above" ? "" : "-"}${line}` : undefined,
      }}
      onKeyDown={(event) => {
        // In the field of the priority the arrows count.
        if (!moves || !event.altKey || event.target instanceof HTMLInputElement) return;
        if (!["ArrowUp", "ArrowDown"].includes(event.key)) return;
        event.preventDefault();
        on.onBy(event.key === "ArrowUp" ? -1 : 1);
      }}
      onDragStart={(event) => {
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData("text/plain", run.name);
        on.onDrag();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        on.onOver();
      }}
      onDrop={(event) => {
        event.preventDefault();
        on.onDrop();
      }}
      onDragEnd={on.onDragEnd}
    >
      <Table.Td ta="right">{run.position}</Table.Td>
      <Table.Td visibleFrom="sm">{arrows}</Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <Link
            to="/p/$project/runs/$run"
            params={{ project: run.project, run: run.id }}
            size="sm"
            fw={550}
            draggable={false}
          >
            {runName(run)}
          </Link>
          {run.project !== project && <Badge color="gray">{run.project}</Badge>}
        </Group>
        <Text size="xs" c="dimmed">
          {run.method ?? run.kind}
          {run.shard !== null && `, shard ${run.shard + 1}`}, by {run.created_by}
        </Text>
        <Text size="xs" c="dimmed" hiddenFrom="md">
          <Why run={run} queue={queue} paused={paused} />
        </Text>
        <Box hiddenFrom="sm" mt={4}>
          {arrows}
        </Box>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <PartOf project={run.project} pipeline={run.pipeline_id} />
      </Table.Td>
      <Table.Td>
        {movable ? <Priority key={run.priority} run={run} onChange={on.onPriority} /> : run.priority}
      </Table.Td>
      <Table.Td visibleFrom="md">
        <When at={run.queued_at} />
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Why run={run} queue={queue} paused={paused} />
      </Table.Td>
    </Table.Tr>
  );
}

interface ArrowProperties {
  label: string;
  off: boolean;
  onClick: () => void;
  children: React.ReactNode;
}

function Arrow({ label, off, onClick, children }: ArrowProperties) {
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label={label}
      title={label}
      disabled={off}
      bg={off ? "transparent" : undefined}
      onClick={onClick}
    >
      {children}
    </ActionIcon>
  );
}

/** Takes effect on Enter or when left, so rows do not move while a number is typed. */
function Priority({ run, onChange }: { run: QueuedRun; onChange: (priority: number) => void }) {
  const [value, setValue] = useState<number | string>(run.priority);
  const commit = () => (value === "" ? setValue(run.priority) : onChange(Number(value)));
  return (
    <NumberInput
      aria-label={`Priority of ${run.name}`}
      size="xs"
      w={76}
      min={-100}
      max={100}
      allowDecimal={false}
      clampBehavior="strict"
      value={value}
      onChange={setValue}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
        if (event.key === "Escape") setValue(run.priority);
      }}
    />
  );
}

function Why({ run, queue, paused }: { run: QueuedRun; queue: Schemas["QueueOut"]; paused: boolean }) {
  const now = useNow();
  if (paused && run.not_before)
    return <>An attempt failed; the next comes in {seconds((Date.parse(run.not_before) - now) / 1000)}</>;
  if (!queue.workers) return <>No worker of pool {queue.pool} is alive</>;
  const ahead = run.position - 1;
  if (ahead) return <>{ahead === 1 ? "1 run is" : `${ahead} runs are`} ahead of it</>;
  return (
    <>
      {queue.running >= queue.workers ? "Next, as soon as a worker is free" : "A worker will take it shortly"}
    </>
  );
}
