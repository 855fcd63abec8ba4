import { Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { importAnswers } from "../../../api/evaluation/files";
import { count } from "../../../shared/format/format";
import { ImportFile } from "../ImportFile";

const FORMATS = {
  fastchat: "FastChat (MT-Bench, Vicuna)",
  alpaca_eval: "AlpacaEval",
  arena_hard: "Arena-Hard",
};

interface Properties {
  project: string;
  evaluation: Evaluation;
  opened: boolean;
  onClose: () => void;
}

export function ImportAnswers({ opened, onClose, ...rest }: Properties) {
  return (
    <Modal opened={opened} onClose={onClose} title="Answers from a file" size="lg">
      <Form {...rest} onDone={onClose} />
    </Modal>
  );
}

function Form({
  project,
  evaluation,
  onDone,
}: Omit<Properties, "opened" | "onClose"> & { onDone: () => void }) {
  const [name, setName] = useState("");
  const [family, setFamily] = useState("");
  return (
    <ImportFile
      project={project}
      formats={FORMATS}
      hint="Each row is about the prompt of its id, else of its text, else of its place in the file."
      send={(fields) =>
        importAnswers(project, evaluation.id, { ...fields, name: name.trim(), family: family.trim() })
      }
      result={imported}
      onDone={onDone}
      more
    >
      <TextInput
        label="Name of the entrant"
        description="For a file of one model; several are named by the file"
        placeholder="as in the file"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Family"
        description="Of models: gpt, llama, qwen; to see whether a judge prefers its own"
        placeholder="known from the model's name"
        value={family}
        onChange={(event) => setFamily(event.currentTarget.value)}
      />
    </ImportFile>
  );
}

const imported = (found: Schemas["AnswersImported"]) => ({
  good: found.matched > 0,
  title: `${count(found.matched)} answers of ${count(found.rows)} rows are in`,
  text: (
    <>
      {found.entrants.map((one) => one.name).join(", ") || "No entrant"}, read as {found.format}.
      {found.duplicates > 0 && ` ${count(found.duplicates)} answers were there twice; the newest counts.`}
      {found.short > 0 && ` ${count(found.short)} answers have fewer turns than their prompt.`}
    </>
  ),
});
