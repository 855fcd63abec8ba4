import { Modal, SegmentedControl, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { datasetsQuery } from "../../api/datasets/datasets";
import {
  datasetAnswersQuery,
  evaluateDataset,
  evaluationQuery,
  evaluationsQuery,
} from "../../api/evaluation/evaluations";
import { Loaded } from "../Feedback";
import { count, counted } from "../format/format";
import { useByName } from "../forms/useByName";
import { ANSWERED } from "./answeredKinds";
import { CampaignForm } from "./CampaignForm";

interface Properties {
  project: string;
  /** By name; what is asked about where it is given. */
  dataset?: string;
  opened: boolean;
  onClose: () => void;
}

/** A campaign about the answers of an evaluation or of a dataset, from wherever a person is. */
export function NewCampaign({ project, dataset, opened, onClose }: Properties) {
  const navigate = useNavigate();
  const onDone = (evaluation: string) => {
    onClose();
    void navigate({
      to: "/p/$project/evaluations/$evaluation",
      params: { project, evaluation },
      search: { tab: "people" },
    });
  };
  return (
    <Modal opened={opened} onClose={onClose} title="New campaign" size="lg">
      {dataset ? (
        <OfDataset project={project} dataset={dataset} onDone={onDone} />
      ) : (
        <Choice project={project} onDone={onDone} />
      )}
    </Modal>
  );
}

interface ChoiceProperties {
  project: string;
  onDone: (evaluation: string) => void;
}

function Choice({ project, onDone }: ChoiceProperties) {
  const [from, setFrom] = useState<"evaluation" | "dataset">("evaluation");
  const [evaluation, setEvaluation] = useState<string | null>(null);
  const [dataset, setDataset] = useState<string | null>(null);
  const evaluations = useByName((name) => evaluationsQuery(project, name), { chosen: [evaluation] });
  const datasets = useByName((name) => datasetsQuery(project, { name, kind: [...ANSWERED] }), {
    chosen: [dataset],
  });
  const nothing = { evaluation: "No evaluations yet", dataset: "No datasets with answers yet" };
  return (
    <Stack>
      <SegmentedControl
        aria-label="Answers from"
        style={{ alignSelf: "flex-start" }}
        value={from}
        onChange={(value) => setFrom(value as typeof from)}
        data={[
          { value: "evaluation", label: "An evaluation" },
          { value: "dataset", label: "A dataset" },
        ]}
      />
      {from === "evaluation" ? (
        <Select
          key="evaluation"
          label="Evaluation"
          description="Annotators compare the answers of its entrants"
          required
          searchable
          allowDeselect={false}
          placeholder={evaluations.data?.length === 0 ? nothing.evaluation : "Choose one"}
          onSearchChange={evaluations.onSearchChange}
          data={(evaluations.data ?? []).map((one) => ({
            value: one.name,
            label: `${one.name} · ${counted(one.entrants.length, "entrant")}, ${counted(one.prompts, "prompt")}`,
            disabled: !one.entrants.length,
          }))}
          value={evaluation}
          onChange={setEvaluation}
        />
      ) : (
        <Select
          key="dataset"
          label="Dataset"
          description="Annotators compare the answers that it has for each prompt"
          required
          searchable
          allowDeselect={false}
          placeholder={datasets.data?.length === 0 ? nothing.dataset : "Choose one"}
          onSearchChange={datasets.onSearchChange}
          data={(datasets.data ?? []).map((one) => ({
            value: one.name,
            label: `${one.name} · ${count(one.rows)} ${one.kind}`,
          }))}
          value={dataset}
          onChange={setDataset}
        />
      )}
      {from === "evaluation" && evaluation && (
        <OfEvaluation key={evaluation} project={project} evaluation={evaluation} onDone={onDone} />
      )}
      {from === "dataset" && dataset && (
        <OfDataset key={dataset} project={project} dataset={dataset} onDone={onDone} />
      )}
    </Stack>
  );
}

function OfEvaluation({ project, evaluation, onDone }: ChoiceProperties & { evaluation: string }) {
  const query = useQuery(evaluationQuery(project, evaluation));
  return (
    <Loaded query={query} rows={4}>
      {(found) => (
        <CampaignForm
          project={project}
          evaluation={found.id}
          entrants={found.entrants.map((one) => one.name)}
          judges={found.judges.map((one) => one.name)}
          onDone={() => onDone(found.name)}
        />
      )}
    </Loaded>
  );
}

function OfDataset({ project, dataset, onDone }: ChoiceProperties & { dataset: string }) {
  const query = useQuery(datasetAnswersQuery(project, dataset));
  return (
    <Loaded query={query} rows={4}>
      {({ evaluation, entrants, prompts }) =>
        // With judges and standings, where it is there.
        evaluation !== null ? (
          <OfEvaluation project={project} evaluation={evaluation} onDone={onDone} />
        ) : (
          <>
            <Text size="sm" c="dimmed" mb="md">
              {counted(prompts, "prompt")} with{" "}
              {entrants.map((one) => `${one.name} (${count(one.prompts)})`).join(", ")}. The campaign creates
              an evaluation of these answers, which judges and reward models can assess, too.
            </Text>
            <CampaignForm
              project={project}
              evaluation={null}
              entrants={entrants.map((one) => one.name)}
              judges={[]}
              task={entrants.length === 2 ? "pairwise" : entrants.length === 1 ? "correction" : "ranking"}
              prepare={async () => (await evaluateDataset(project, dataset)).name}
              onDone={onDone}
            />
          </>
        )
      }
    </Loaded>
  );
}
