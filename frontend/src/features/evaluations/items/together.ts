import type { ItemVerdict } from "../../../api/evaluation/items";

/** By judge, the verdicts that were read from one answer together: a judge that saw all answers at once wrote one. */
export function together(verdicts: ItemVerdict[]): Map<string, ItemVerdict[][]> {
  const found = new Map<string, ItemVerdict[][]>();
  for (const one of verdicts) {
    const answers = found.get(one.judge) ?? [];
    found.set(one.judge, answers);
    const last = answers.at(-1)?.[0];
    const same = last && one.style === "multi" && last.turn === one.turn && last.raw === one.raw;
    if (same) answers.at(-1)!.push(one);
    else answers.push([one]);
  }
  return found;
}
