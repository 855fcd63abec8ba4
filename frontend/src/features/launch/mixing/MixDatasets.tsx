import { Alert, Button, CloseButton, Group, Modal, NumberInput, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconArrowsJoin, IconPlus } from "@tabler/icons-react";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { everything } from "../../../api/client";
import { datasetQuery } from "../../../api/datasets/datasets";
import { ENDED, launchRun, runQuery } from "../../../api/runs/runs";
import { Failure } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { RunProgress } from "../../../shared/Progress";
import { ThingSelect } from "../ThingSelect";
import { given, largest, type Mixed, type Part, sharesOf } from "./mixture";

interface Properties {
  project: string;
  makes: Mixed;
  /** What the form has chosen already: the first part. */
  first: string | null;
  onMade: (dataset: string) => void;
}

const EMPTY: Part = { dataset: null, weight: 1 };
const POLL_MS = 1000;

/** A button that makes one dataset from several, by weight, and gives it to the form. */
export function MixDatasets(properties: Properties) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button
        size="compact-xs"
        variant="subtle"
        mt={4}
        leftSection={<IconArrowsJoin size={14} />}
        onClick={open}
      >
        Mix several datasets
      </Button>
      <Modal opened={opened} onClose={close} title="Mix datasets" size="lg">
        <MixForm
          {...properties}
          onMade={(dataset) => {
            properties.onMade(dataset);
            close();
          }}
        />
      </Modal>
    </>
  );
}

function MixForm({ project, makes, first, onMade }: Properties) {
  const [parts, setParts] = useState<Part[]>([{ ...EMPTY, dataset: first }, EMPTY]);
  const [size, setSize] = useState<number | null>(null);
  const client = useQueryClient();
  const set = (at: number, change: Partial<Part>) =>
    setParts((before) => before.map((part, place) => (place === at ? { ...part, ...change } : part)));
  const datasets = useQueries({
    queries: parts.map(({ dataset }) => ({ ...datasetQuery(project, dataset ?? ""), enabled: !!dataset })),
  });
  const shares = sharesOf(parts.map(({ weight }) => weight));
  const rows = datasets.map(({ data }) => (data ? given(makes, data) : null));
  const known = rows.every((one): one is number => one !== null);
  const most = known ? largest(shares, rows as number[]) : null;
  const wanted = size ?? most;
  const ready = known && parts.length > 1 && parts.every(({ weight }) => weight > 0) && !!wanted;
  const mix = useMutation({
    mutationFn: () =>
      launchRun(project, {
        config: { run: "mix", makes, parts: shares.map((share) => ({ share })), size: wanted! },
        inputs: Object.fromEntries(parts.map(({ dataset }, at) => [`parts.${at}`, dataset!])),
        pool: "default",
        priority: 0,
        reuse: true,
      }),
  });
  const run = useQuery({
    ...runQuery(project, mix.data?.id ?? ""),
    enabled: !!mix.data,
    refetchInterval: ({ state }) => (state.data && ENDED.includes(state.data.state) ? false : POLL_MS),
  });
  const made = run.data?.outputs.find(({ type }) => type === "dataset");
  useEffect(() => {
    if (!made?.label) return;
    void client.invalidateQueries({ queryKey: everything(project) });
    onMade(made.label);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- given to the form once
  }, [made?.label]);
  const ended = !!run.data && ENDED.includes(run.data.state);
  const busy = mix.isPending || (!!mix.data && !ended);
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {makes === "preferences"
          ? "Rows are drawn without replacement by weight. Pairs stay as they are."
          : "Rows are drawn without replacement by weight. Pairs are taken apart: each of their sides is a row."}
      </Text>
      {parts.map((part, at) => (
        <Group key={at} align="flex-end" gap="sm" role="group" aria-label={`Dataset ${at + 1}`}>
          <div style={{ flex: "1 1 180px" }}>
            <ThingSelect
              project={project}
              type="dataset"
              allowed={makes === "preferences" ? [makes] : ["instructions", "preferences", "labelled"]}
              label={`Dataset ${at + 1}`}
              value={part.dataset}
              required
              onChange={(dataset) => set(at, { dataset })}
            />
          </div>
          <NumberInput
            label="Weight"
            w={84}
            min={0}
            value={part.weight}
            error={part.weight > 0 ? undefined : true}
            onChange={(weight) => set(at, { weight: Number(weight) || 0 })}
          />
          {!!wanted && rows[at] !== null && (
            <Text size="sm" w={110} mb={8} ta="right">
              {`${count(Math.round(shares[at]! * wanted))} of ${count(rows[at]!)}`}
            </Text>
          )}
          <CloseButton
            aria-label={`Remove dataset ${at + 1}`}
            mb={4}
            disabled={parts.length < 3}
            onClick={() => setParts((before) => before.filter((_, place) => place !== at))}
          />
        </Group>
      ))}
      <Group>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconPlus size={14} />}
          onClick={() => setParts((before) => [...before, EMPTY])}
        >
          Add a dataset
        </Button>
      </Group>
      <NumberInput
        label="Rows"
        description={
          most === null
            ? "Choose the datasets first"
            : `${count(most)} at most, before one of them has too few for its share`
        }
        min={1}
        max={most ?? undefined}
        clampBehavior="blur"
        value={wanted ?? ""}
        onChange={(value) => setSize(Number(value) || null)}
      />
      {mix.error && <Failure error={mix.error} />}
      {run.data && <RunProgress run={run.data} />}
      {run.data?.state === "queued" && (
        <Text size="sm">Waiting for a worker. The mixture is made also if you close this.</Text>
      )}
      {ended && run.data.state !== "succeeded" && (
        <Alert color="red" title="The mixture was not made" role="alert">
          {run.data.reason}{" "}
          <Link inherit underline="always" to="/p/$project/runs/$run" params={{ project, run: run.data.id }}>
            Open the run
          </Link>
        </Alert>
      )}
      <Group justify="flex-end">
        <Button disabled={!ready} loading={busy} onClick={() => mix.mutate()}>
          Mix
        </Button>
      </Group>
    </Stack>
  );
}
