import type { Schemas } from "../../../api/client";
import { importJudgments } from "../../../api/evaluation/files";
import { count, counted } from "../../../shared/format/format";
import type { FileImport } from "./ImportFile";

/** Judgments that were made elsewhere, as a judge of an evaluation. */
export const JUDGMENTS: FileImport<Schemas["JudgmentsImported"]> = {
  title: "Judgments from a file",
  formats: {
    fastchat_single: "FastChat, single answers",
    fastchat_pair: "FastChat, pairs",
    alpaca_eval: "AlpacaEval annotations",
    arena_hard: "Arena-Hard judgments",
    arena_bench: "arena-bench scores",
    vicuna_review: "Vicuna reviews",
  },
  fields: [
    { name: "name", type: "text", label: "Name of the judge", placeholder: "the model's" },
    {
      name: "model",
      type: "text",
      label: "Model that judged",
      description: "Judge to use, if the file has several",
      placeholder: "as in the file",
    },
    {
      name: "family",
      type: "text",
      label: "Family",
      description: "To see whether it prefers its own",
      placeholder: "known from the model's name",
    },
    {
      name: "baseline",
      type: "entrant",
      label: "Baseline",
      description: "For an Arena-Hard file that names none",
    },
    {
      name: "add_entrants",
      type: "switch",
      label: "Add models that the evaluation does not have",
      description: "With the answers that the file repeats, if any",
    },
  ],
  send: importJudgments,
  result: (found) => ({
    good: found.ok > 0,
    title: `${counted(found.verdicts, "verdict")} imported from ${counted(found.rows, "row")}`,
    text: (
      <>
        Judge {found.judge.name}, read as {found.format.replace("_", " ")}: {count(found.ok)} parsed,{" "}
        {count(found.unparsed)} unparsed, {count(found.refused)} refused, {counted(found.errors, "error")}.
        {found.duplicates > 0 && ` ${count(found.duplicates)} are superseded by newer ones.`}
        {found.entrants_added.length > 0 && ` New entrants: ${found.entrants_added.join(", ")}.`}
      </>
    ),
  }),
};
