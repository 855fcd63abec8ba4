import type { Schemas } from "../../../api/client";

const WEIGHTED = /^(\d+(?:\.\d+)?):\s*(\S.*)$/;

/** The criteria of a rubric, one per line, such as `2: Is it polite?`; null without any. */
export function criteriaOf(text: string): Schemas["RubricCriterion"][] | null {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line);
  const criteria = lines.map((line) => {
    const weighted = WEIGHTED.exec(line);
    return weighted ? { question: weighted[2]!, weight: Number(weighted[1]) } : { question: line, weight: 1 };
  });
  return criteria.length ? criteria : null;
}
