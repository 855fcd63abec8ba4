import type { Schemas } from "../../../api/client";
import { importAnswers } from "../../../api/evaluation/files";
import { count, counted } from "../../../shared/format/format";
import type { FileImport } from "./ImportFile";

/** Answers that were made elsewhere, as entrants of an evaluation. */
export const ANSWERS: FileImport<Schemas["AnswersImported"]> = {
  title: "Answers from a file",
  hint: "Rows are matched to prompts by id, otherwise by text, otherwise by their place in the file.",
  formats: {
    fastchat: "FastChat (MT-Bench, Vicuna)",
    alpaca_eval: "AlpacaEval",
    arena_hard: "Arena-Hard",
  },
  fields: [
    {
      name: "name",
      type: "text",
      label: "Name of the entrant",
      description: "For a file of one model; several are named by the file",
      placeholder: "as in the file",
    },
    {
      name: "family",
      type: "text",
      label: "Family",
      description: "For example gpt, llama or qwen; shows whether a judge prefers its own",
      placeholder: "known from the model's name",
    },
  ],
  send: importAnswers,
  result: (found) => ({
    good: found.matched > 0,
    title: `${counted(found.matched, "answer")} imported from ${counted(found.rows, "row")}`,
    text: (
      <>
        {found.entrants.map((one) => one.name).join(", ") || "No entrant"}, read as {found.format}.
        {found.duplicates > 0 &&
          ` ${count(found.duplicates)} answers were duplicates; the newest ones count.`}
        {found.short > 0 && ` ${count(found.short)} answers have fewer turns than their prompt.`}
      </>
    ),
  }),
};
