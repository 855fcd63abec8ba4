import { Checkbox, Select, SimpleGrid, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { importJudgments } from "../../../api/evaluation/files";
import { count } from "../../../shared/format/format";
import { ImportFile } from "../ImportFile";

const FORMATS = {
  fastchat_single: "FastChat, single answers",
  fastchat_pair: "FastChat, pairs",
  alpaca_eval: "AlpacaEval annotations",
  arena_hard: "Arena-Hard judgments",
  arena_bench: "arena-bench scores",
  vicuna_review: "Vicuna reviews",
};

interface Properties {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}

/** Judgments made elsewhere, as a judge of this evaluation. */
export function ImportJudgments({ project, evaluation, onDone }: Properties) {
  const [name, setName] = useState("");
  const [model, setModel] = useState("");
  const [family, setFamily] = useState("");
  const [baseline, setBaseline] = useState<string | null>(null);
  const [add, setAdd] = useState(false);
  return (
    <ImportFile
      project={project}
      formats={FORMATS}
      send={(fields) =>
        importJudgments(project, evaluation.id, {
          ...fields,
          name: name.trim(),
          model: model.trim(),
          family: family.trim(),
          baseline,
          add_entrants: add,
        })
      }
      result={imported}
      onDone={onDone}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextInput
          label="Name of the judge"
          placeholder="the model's"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label="Model that judged"
          description="Which one, in a file of several judges"
          placeholder="as in the file"
          value={model}
          onChange={(event) => setModel(event.currentTarget.value)}
        />
        <TextInput
          label="Family"
          description="To see whether it prefers its own"
          placeholder="known from the model's name"
          value={family}
          onChange={(event) => setFamily(event.currentTarget.value)}
        />
        <Select
          label="Baseline"
          description="Where an Arena-Hard file names none"
          data={evaluation.entrants.map((one) => one.name)}
          clearable
          value={baseline}
          onChange={setBaseline}
        />
      </SimpleGrid>
      <Checkbox
        label="Enter models that the evaluation does not have"
        description="With the answers that the file repeats, if any"
        checked={add}
        onChange={(event) => setAdd(event.currentTarget.checked)}
      />
    </ImportFile>
  );
}

const imported = (found: Schemas["JudgmentsImported"]) => ({
  good: found.ok > 0,
  title: `${count(found.verdicts)} verdicts of ${count(found.rows)} rows are in`,
  text: (
    <>
      Judge {found.judge.name}, read as {found.format.replace("_", " ")}: {count(found.ok)} read,{" "}
      {count(found.unparsed)} not read, {count(found.refused)} refused, {count(found.errors)} errors.
      {found.duplicates > 0 && ` ${count(found.duplicates)} are superseded by newer ones.`}
      {found.entrants_added.length > 0 && ` Entered: ${found.entrants_added.join(", ")}.`}
    </>
  ),
});
