import { Group, Loader, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fitQuery, type ModelFit as Fit } from "../../api/models/fit";
import { Failure } from "../../shared/Feedback";
import { Facts, type Fact } from "../../shared/Facts";
import { bytes, count } from "../../shared/format/format";

type Worker = Fit["workers"][number];

const USES = { training: "Training", lora: "LoRA", inference: "Inference" };

/** Size, template, licence, and whether the workers have room for the model. */
export function ModelFit({ query }: { query: ReturnType<typeof fitQuery> }) {
  const { data: fit, error, isFetching } = useQuery(query);
  if (error) return <Failure error={error} />;
  if (!fit) return isFetching ? <Loader size="sm" aria-label="Checking the fit" /> : null;
  return (
    <Stack gap="xs">
      <Facts facts={factsOf(fit)} columns={3} />
      {fit.workers.map((worker) => (
        <OnWorker key={worker.name} worker={worker} />
      ))}
      {fit.workers.length === 0 && (
        <Text size="sm" c="dimmed">
          No worker is running, so it is unknown whether it fits.
        </Text>
      )}
    </Stack>
  );
}

function factsOf(fit: Fit): Fact[] {
  return [
    [
      "Architecture",
      fit.architecture ?? "not named",
      fit.quantised.length ? `dequantised from ${fit.quantised.join(", ")}` : undefined,
    ],
    ["Parameters", fit.parameters === null ? "not known" : count(fit.parameters)],
    ["Size", bytes(fit.size), `${fit.file ?? `${fit.files} ${fit.files === 1 ? "file" : "files"}`}`],
    [
      "Chat template",
      fit.template === null ? "not known" : fit.template ? "its own" : "none",
      fit.template === false ? "the plain one is used" : undefined,
    ],
    [
      "Licence",
      fit.licence ?? "not named",
      fit.gated ? "its terms have to be accepted on the hub" : undefined,
    ],
    ...(fit.revision ? [["Commit", fit.revision.slice(0, 12)] satisfies Fact] : []),
  ];
}

function OnWorker({ worker }: { worker: Worker }) {
  const has =
    worker.device_bytes === null
      ? "memory not known"
      : `${bytes(worker.device_bytes)} ${worker.on_gpu ? "on each GPU" : "of memory"}`;
  return (
    <div>
      <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
        {`${worker.name}, ${has}`}
      </Text>
      <Group gap="md" style={{ rowGap: 0 }}>
        {worker.needs.map((need) => (
          <Text key={need.use} size="sm" c={need.fits === false ? "red" : undefined}>
            {`${USES[need.use]} ${bytes(need.bytes)}${need.fits === null ? "" : need.fits ? " fits" : " is too large"}`}
          </Text>
        ))}
        {worker.needs.length === 0 && (
          <Text size="sm">Its memory needs are unknown for this architecture.</Text>
        )}
      </Group>
    </div>
  );
}
