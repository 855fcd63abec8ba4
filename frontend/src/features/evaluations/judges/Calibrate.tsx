import { Button, Modal, NumberInput, Select, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { evaluationKeys, placeOf } from "../../../api/evaluation/evaluations";
import { calibrateJudge, type Judge } from "../../../api/evaluation/judges";
import { ActionRow } from "../../../shared/ActionBar";
import { Link } from "../../../shared/links";

interface Properties {
  project: string;
  evaluation: string;
  judge: Judge;
}

/** Asks a judge about pairs whose better side is known. */
export function Calibrate({ project, evaluation, judge }: Properties) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={open}>
        Calibrate
      </Button>
      <Modal opened={opened} onClose={close} title={`Calibrate ${judge.name}`}>
        <CalibrationForm project={project} evaluation={evaluation} judge={judge} />
      </Modal>
    </>
  );
}

function CalibrationForm({ project, evaluation, judge }: Properties) {
  const client = useQueryClient();
  const datasets = useQuery(datasetsQuery(project));
  const known = (datasets.data?.items ?? []).filter((one) => one.kind === "preferences");
  const [chosen, setDataset] = useState<string | null>(null);
  const dataset = chosen ?? (known.length === 1 ? known[0]!.name : null);
  const [limit, setLimit] = useState<number | null>(100);
  const make = useMutation({
    mutationFn: () =>
      calibrateJudge(project, evaluation, judge.id, { dataset: dataset ?? "", limit: limit ?? 100 }),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  if (make.data)
    return (
      <Text size="sm">
        It judges the pairs of{" "}
        <Link
          size="sm"
          underline="always"
          to="/p/$project/evaluations/$evaluation"
          params={{ project, evaluation: make.data.evaluation }}
          search={{ tab: "judges" }}
        >
          {make.data.evaluation}
        </Link>
        . When it has ended, the report has the share that it gets right.
      </Text>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate();
      }}
    >
      <Stack>
        <Select
          label="Pairs"
          description="A dataset of preferences whose chosen side is known to be better"
          required
          searchable
          data={known.map((one) => one.name)}
          value={dataset}
          placeholder={datasets.data && !known.length ? "there is none yet" : "Choose a dataset"}
          error={placeOf(make.error, "dataset")}
          onChange={setDataset}
        />
        <NumberInput
          label="How many"
          description="Drawn by the seed; answers that are known already cost nothing"
          min={1}
          max={2000}
          allowDecimal={false}
          value={limit ?? ""}
          error={placeOf(make.error, "limit")}
          onChange={(value) => setLimit(typeof value === "number" ? value : null)}
        />
        <ActionRow error={make.error}>
          <Button type="submit" disabled={!dataset || !limit} loading={make.isPending}>
            Ask it
          </Button>
        </ActionRow>
      </Stack>
    </form>
  );
}
