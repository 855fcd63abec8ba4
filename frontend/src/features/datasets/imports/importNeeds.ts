import type { Import } from "../../../api/datasets/imports";
import { count, counted } from "../../../shared/format/format";

/** What an import waits for, and the step that leads on; undefined once it has ended. */
export function needsOf(one: Import): { lacks: string; step: string } | undefined {
  const { report, problem, progress } = one;
  const read = progress ? `: ${counted(progress.read, "row")} read` : "";
  if (["succeeded", "cancelled"].includes(one.state)) return undefined;
  if (one.file_gone) return { lacks: "Its file was removed. Upload it again.", step: "Open it" };
  if (one.state === "validating") return { lacks: `Its rows are being checked${read}.`, step: "Watch it" };
  if (one.state === "importing") return { lacks: `It is being imported${read}.`, step: "Watch it" };
  if (problem) {
    const step = one.state === "failed" ? "See what was refused" : "Map its columns";
    return { lacks: [problem.detail, problem.hint].filter(Boolean).join(". "), step };
  }
  if (!report)
    return { lacks: "Its columns are mapped; its rows are not checked yet.", step: "Check its rows" };
  if (report.bad_rows > 0 && one.options.bad_rows === "refuse")
    return {
      lacks: `${count(report.bad_rows)} of its ${counted(report.read, "row")} are not valid, and the file is refused for them.`,
      step: "Correct or skip them",
    };
  return {
    lacks: `It is checked, and nothing is stored yet.`,
    step: `Import its ${counted(report.rows, "row")}`,
  };
}
