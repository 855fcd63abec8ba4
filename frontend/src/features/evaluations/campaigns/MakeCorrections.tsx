import { Checkbox, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { type Campaign, makeCorrections } from "../../../api/evaluation/campaigns";
import { type Evaluation, placeOf } from "../../../api/evaluation/evaluations";
import { count } from "../../../shared/format/format";
import { SendForm } from "../../../shared/forms/SendForm";
import { Link } from "../../../shared/links";

interface Properties {
  project: string;
  evaluation: Evaluation;
  campaign: Campaign;
}

/** A dataset of the answers as people rewrote them. */
export function MakeCorrections({ project, evaluation, campaign }: Properties) {
  const [name, setName] = useState("");
  const [unchanged, setUnchanged] = useState(true);
  const [trainAll, setTrainAll] = useState(false);
  const make = useMutation({
    mutationFn: () =>
      makeCorrections(project, evaluation.id, campaign.id, {
        name: name.trim() || null,
        unchanged,
        split: trainAll ? "train" : "by_prompt",
      }),
  });
  if (make.data) {
    const { name: made, rows, held_out_rows: heldOut } = make.data;
    return (
      <Text size="sm">
        Made{" "}
        <Link to="/p/$project/datasets/$dataset" params={{ project, dataset: made }}>
          {made}
        </Link>{" "}
        with {count(rows)} {rows === 1 ? "row" : "rows"}, {count(heldOut)} held out. SFT can train on it.
      </Text>
    );
  }
  return (
    <SendForm send={make} label="Make the dataset">
      <Text size="sm" c="dimmed">
        One row per corrected answer: the prompt, and the answer as it should be, with who wrote it.
      </Text>
      <TextInput
        label="Name"
        description="A version number is appended"
        placeholder={`${evaluation.name}-corrections`}
        value={name}
        error={placeOf(make.error, "name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Checkbox
        label="Include answers that were accepted unchanged"
        checked={unchanged}
        onChange={(event) => setUnchanged(event.currentTarget.checked)}
      />
      <Checkbox
        label="Train on held-out prompts, too"
        description="Evaluations on them then report that the model has seen them"
        checked={trainAll}
        onChange={(event) => setTrainAll(event.currentTarget.checked)}
      />
    </SendForm>
  );
}
