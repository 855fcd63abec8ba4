import { Button, Group, NumberInput, Select } from "@mantine/core";
import { useState } from "react";
import { datasetsQuery } from "../../../api/datasets/datasets";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { modelsQuery } from "../../../api/models/models";
import { useByName } from "../../../shared/forms/useByName";
import {
  type Choice,
  firstChoice,
  isComplete,
  METRICS,
  ruleOf,
  sourceOf,
  statsOf,
  withMetric,
  withReward,
} from "./ruleChoice";

const SOURCES = [
  { value: "judge", label: "judges" },
  { value: "human", label: "people" },
  { value: "reward", label: "rewards" },
];
const FIGURES = [
  { value: "ci_low", label: "low end of 95%" },
  { value: "value", label: "value" },
  { value: "ci_high", label: "high end of 95%" },
  { value: "n", label: "n" },
  { value: "p_holm", label: "p after Holm" },
  { value: "p", label: "p" },
];
const COMMON = { size: "xs", w: 150, allowDeselect: false } as const;

/** One rule, made by choosing. */
export function RuleForm({
  project,
  evaluation,
  onAdd,
}: {
  project: string;
  evaluation: Evaluation;
  onAdd: (rule: Record<string, unknown>) => void;
}) {
  const names = evaluation.entrants.map((entrant) => entrant.name);
  const [choice, setChoice] = useState(() => firstChoice(names, sourceOf(evaluation)));
  const { metric } = choice;
  const change = (changes: Partial<Choice>) => setChoice({ ...choice, ...changes });
  const stats = statsOf(choice);
  return (
    <Group gap="xs" align="flex-end" role="group" aria-label="Add a rule">
      <Select
        {...COMMON}
        label="Metric"
        w={190}
        data={METRICS.map(({ name, label }) => ({ value: name, label }))}
        value={metric.name}
        onChange={(next) => next && setChoice(withMetric(choice, next))}
      />
      {metric.entrant && (
        <Select
          {...COMMON}
          label="of"
          data={names}
          value={choice.entrant}
          onChange={(entrant) => change({ entrant })}
        />
      )}
      {metric.vs === "entrant" && (
        <Select
          {...COMMON}
          label="against"
          data={names}
          value={choice.vs}
          onChange={(vs) => change({ vs })}
        />
      )}
      {metric.benchmark && (
        <BenchmarkFields project={project} evaluation={evaluation} choice={choice} onChange={setChoice} />
      )}
      {metric.by && metric.by.length > 1 && (
        <Select
          {...COMMON}
          label="by"
          w={110}
          data={SOURCES}
          value={choice.by}
          onChange={(by) => by && change({ by })}
        />
      )}
      {stats.length > 1 && (
        <Select
          {...COMMON}
          label="Figure"
          data={FIGURES.filter((figure) => stats.includes(figure.value))}
          value={choice.stat}
          onChange={(stat) => stat && change({ stat })}
        />
      )}
      {choice.value !== false && (
        <>
          <Select
            {...COMMON}
            label="is"
            w={70}
            data={[">", ">=", "<", "<="]}
            value={choice.op}
            onChange={(op) => op && change({ op })}
          />
          <NumberInput
            label="Bound"
            size="xs"
            w={90}
            step={0.05}
            value={choice.value}
            onChange={(value) => change({ value })}
          />
        </>
      )}
      <Button
        size="xs"
        variant="default"
        disabled={!isComplete(choice)}
        onClick={() => onAdd(ruleOf(choice))}
      >
        Add the rule
      </Button>
    </Group>
  );
}

/** The benchmark, the evaluation's reward model, and another one to compare it with. */
function BenchmarkFields({
  project,
  evaluation,
  choice,
  onChange,
}: {
  project: string;
  evaluation: Evaluation;
  choice: Choice;
  onChange: (choice: Choice) => void;
}) {
  const benchmarks = useByName(
    (name) => datasetsQuery(project, { name, kind: ["preferences", "labelled"] }),
    { chosen: [choice.benchmark] },
  );
  const models = useByName((name) => modelsQuery(project, { name, role: ["reward", "preference"] }), {
    chosen: [choice.reward],
  });
  return (
    <>
      <Select
        {...COMMON}
        label="on"
        placeholder="a benchmark"
        searchable
        data={(benchmarks.data ?? []).map((dataset) => dataset.name)}
        onSearchChange={benchmarks.onSearchChange}
        value={choice.benchmark}
        onChange={(benchmark) => onChange({ ...choice, benchmark })}
      />
      <Select
        {...COMMON}
        label="of"
        placeholder="each reward model"
        clearable
        data={evaluation.reward_assessments.map((assessment) => assessment.name)}
        value={choice.source}
        onChange={(source) => onChange({ ...choice, source })}
      />
      <Select
        {...COMMON}
        label="against"
        placeholder="no other model"
        clearable
        searchable
        data={(models.data ?? []).map((model) => model.name).filter((name) => name !== choice.source)}
        onSearchChange={models.onSearchChange}
        value={choice.reward}
        onChange={(reward) => onChange(withReward(choice, reward))}
      />
    </>
  );
}
