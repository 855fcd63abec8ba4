import { Stack, Text, Tooltip } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { estimateQuery, type PoolMemory, type RunEstimate } from "../../api/runs/runs";
import { bytes, seconds } from "../../shared/format/format";
import { RunWarnings } from "../../shared/RunWarnings";

/** What equal work cost before, or why the server would not start this one. */
export function useEstimate(
  project: string,
  config: Record<string, unknown>,
  inputs: Record<string, string>,
  enabled: boolean,
) {
  // As text, since an object that is new each time would never settle.
  const now = JSON.stringify({ config, inputs });
  const [asked] = useDebouncedValue(now, 400);
  // What was there before the last change may have been incomplete.
  const settled = asked === now;
  const work = JSON.parse(asked) as Schemas["RunWork"];
  return {
    estimate: useQuery({ ...estimateQuery(project, work), enabled: enabled && settled }),
    asked: work,
  };
}

/** Shows a note when nothing is known. */
export function Estimate({ found }: { found: RunEstimate }) {
  return (
    <Stack gap={4}>
      <RunWarnings warnings={found.warnings ?? []} />
      <Text size="sm" c="dimmed">
        {found.device_seconds === null
          ? `No estimate: ${found.finished === 0 ? "no run of this kind has finished in this project yet" : "the finished runs of this kind differ too much from this one in work, model or device"}.`
          : `About ${seconds(found.device_seconds)} of device time${range(found)}, from ${found.based_on.length} earlier ${found.based_on.length === 1 ? "run" : "runs"} scaled to this work.`}
      </Text>
      {found.memory.map((one) => (
        <Memory key={one.pool} found={one} />
      ))}
    </Stack>
  );
}

function range({ device_seconds_low: low, device_seconds_high: high }: RunEstimate): string {
  const [least, most] = [seconds(low), seconds(high)];
  // Equal runs took equally long: a range that rounds to one figure is no information.
  return least === most || (high ?? 0) < (low ?? 0) * 1.05 ? "" : ` (${least} to ${most} in 9 of 10 cases)`;
}

function inParts(found: PoolMemory["parts"]): string {
  return (["weights", "gradients", "optimiser", "activations", "logits", "kv_cache", "overhead"] as const)
    .filter((name) => found[name] > 0)
    .map((name) => `${name.replace("kv_cache", "KV cache")} ${bytes(found[name])}`)
    .join(", ");
}

/** What it needs of a device, and whether the pool's workers have it. */
function Memory({ found }: { found: PoolMemory }) {
  if (found.problem || found.roles.length > 0) {
    return <PlacedMemory found={found} />;
  }
  const where = found.on_gpu ? "on each GPU" : "of memory in each process";
  const has = found.device_bytes === null ? "" : `, of ${bytes(found.device_bytes)}`;
  return (
    <Tooltip label={inParts(found.parts)} multiline maw={360}>
      <Text size="sm" c={found.fits === false ? "red" : "dimmed"} tabIndex={0}>
        {`Pool ${found.pool}: about ${bytes(found.bytes)} ${where}${has}${found.fits === false ? ". It will not fit" : ""}.`}
        {found.fits === false &&
          " Lower micro_tokens, turn gradient checkpointing on, or spread it with strategy zero2 or zero3."}
      </Text>
    </Tooltip>
  );
}

/** The memory of a run whose roles have GPUs of their own: a line for each. */
function PlacedMemory({ found }: { found: PoolMemory }) {
  const of = found.device_bytes === null ? "" : `, of ${bytes(found.device_bytes)}`;
  return (
    <Stack gap={2}>
      {found.problem && <Text size="sm" c="red">{`Pool ${found.pool}: ${found.problem}.`}</Text>}
      {found.roles.map((one) => (
        <Tooltip key={one.role} label={inParts(one.parts)} multiline maw={360}>
          <Text size="sm" c={one.fits ? "dimmed" : "red"} tabIndex={0}>
            {`Pool ${found.pool}, ${one.role} on ${one.devices} ${one.devices === 1 ? "GPU" : "GPUs"}: about ${bytes(one.bytes)} on each${of}${one.fits ? "" : ". It will not fit"}.`}
          </Text>
        </Tooltip>
      ))}
    </Stack>
  );
}
