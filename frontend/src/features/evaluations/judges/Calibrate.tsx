import { Button, Modal, NumberInput, Select, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { evaluationKeys, placeOf } from "../../../api/evaluation/evaluations";
import { calibrateJudge, type Judge } from "../../../api/evaluation/judges";
import { ActionRow } from "../../../shared/ActionBar";
import { Failure } from "../../../shared/Feedback";
import { Link } from "../../../shared/links";
import { useByName } from "../../../shared/forms/useByName";

interface Properties {
  project: string;
  evaluation: string;
  judge: Judge;
}

const PAIRS = 100;

/** Asks a judge about pairs whose better side is known: with one click where the project has one dataset of them. */
export function Calibrate({ project, evaluation, judge }: Properties) {
  const [opened, { open, close }] = useDisclosure();
  const known = useKnownPairs(project).data;
  const make = useCalibration({ project, evaluation, judge });
  const only = known?.length === 1 ? known[0]!.name : null;
  return (
    <>
      {make.data ? (
        <Text size="sm" role="status">
          Asked about <Pairs project={project} evaluation={make.data.evaluation} />
        </Text>
      ) : (
        <Button
          size="compact-sm"
          variant="default"
          loading={make.isPending}
          onClick={only ? () => make.mutate({ dataset: only, limit: PAIRS }) : open}
        >
          {only ? `Calibrate on ${only}` : "Calibrate"}
        </Button>
      )}
      {only && (
        <Button size="compact-sm" variant="subtle" onClick={open}>
          Other pairs
        </Button>
      )}
      {make.error && <Failure error={make.error} />}
      <Modal opened={opened} onClose={close} title={`Calibrate ${judge.name}`}>
        <CalibrationForm project={project} evaluation={evaluation} judge={judge} />
      </Modal>
    </>
  );
}

/** The project's datasets of pairs. */
function useKnownPairs(project: string, chosen: string | null = null) {
  return useByName((name) => datasetsQuery(project, { name, kind: ["preferences"] }), { chosen: [chosen] });
}

function useCalibration({ project, evaluation, judge }: Properties) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: { dataset: string; limit: number }) =>
      calibrateJudge(project, evaluation, judge.id, body),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
}

/** The evaluation that holds a judge's answers to known pairs. */
function Pairs({ project, evaluation }: { project: string; evaluation: string }) {
  return (
    <Link
      size="sm"
      underline="always"
      to="/p/$project/evaluations/$evaluation"
      params={{ project, evaluation }}
      search={{ tab: "judges" }}
    >
      {evaluation}
    </Link>
  );
}

function CalibrationForm({ project, evaluation, judge }: Properties) {
  const [chosen, setDataset] = useState<string | null>(null);
  const pairs = useKnownPairs(project, chosen);
  const known = pairs.data?.map((one) => one.name);
  const dataset = chosen ?? (known?.length === 1 ? known[0]! : null);
  const [limit, setLimit] = useState<number | null>(PAIRS);
  const make = useCalibration({ project, evaluation, judge });
  if (make.data)
    return (
      <Text size="sm">
        It judges the pairs of <Pairs project={project} evaluation={make.data.evaluation} />. When it has
        ended, the report shows the share that it gets right.
      </Text>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate({ dataset: dataset ?? "", limit: limit ?? PAIRS });
      }}
    >
      <Stack>
        <Select
          label="Pairs"
          description="A dataset of preferences whose chosen side is known to be better"
          required
          searchable
          data={known ?? []}
          onSearchChange={pairs.onSearchChange}
          value={dataset}
          placeholder={known && !known.length ? "there is none yet" : "Choose a dataset"}
          error={placeOf(make.error, "dataset")}
          onChange={setDataset}
        />
        <NumberInput
          label="Number of pairs"
          description="Drawn by the seed; cached answers cost nothing"
          min={1}
          max={2000}
          allowDecimal={false}
          value={limit ?? ""}
          error={placeOf(make.error, "limit")}
          onChange={(value) => setLimit(typeof value === "number" ? value : null)}
        />
        <ActionRow error={make.error}>
          <Button type="submit" disabled={!dataset || !limit} loading={make.isPending}>
            Ask the judge
          </Button>
        </ActionRow>
      </Stack>
    </form>
  );
}
