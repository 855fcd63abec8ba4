import {
  Input,
  MultiSelect,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createCampaign, standingQuery } from "../../../api/evaluation/campaigns";
import { type Evaluation, evaluationKeys, placeOf } from "../../../api/evaluation/evaluations";
import { TASK_NAMES, type TaskType } from "../../../api/evaluation/ranking";
import { SendForm } from "../../../shared/forms/SendForm";
import { Criteria, type Criterion } from "./Criteria";

/** What each task asks, and of how many entrants. */
const TASKS: Record<TaskType, { about: string; entrants: string; fewest: number; most: number }> = {
  ranking: {
    about: "Put all answers in order, best first.",
    entrants: "Two to eight are ranked together",
    fewest: 2,
    most: 8,
  },
  pairwise: {
    about: "Choose the better of two answers, with one key: A, B, tie, or both bad.",
    entrants: "Two",
    fewest: 2,
    most: 2,
  },
  likert: {
    about: "Score each answer by every criterion, such as 1 to 5.",
    entrants: "One to eight are scored side by side",
    fewest: 1,
    most: 8,
  },
  correction: {
    about: "Rewrite one answer as it should be; the corrections become a dataset to fine-tune on.",
    entrants: "One",
    fewest: 1,
    most: 1,
  },
};
const SPAN_LABELS = ["factual error", "unsafe", "repetition"];
const QUALITY: Criterion = { name: "Quality", description: "", points: 5 };

interface Properties {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}

export function CampaignForm({ project, evaluation, onDone }: Properties) {
  const client = useQueryClient();
  const standing = useQuery(standingQuery(project, evaluation.id));
  const names = evaluation.entrants.map((one) => one.name);
  const [task, setTask] = useState<TaskType>("ranking");
  const [name, setName] = useState("");
  const [instructions, setInstructions] = useState("");
  const [criteria, setCriteria] = useState<Criterion[]>([]);
  // None: the best ones.
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [overlap, setOverlap] = useState<number | string>(1);
  const [minutes, setMinutes] = useState<number | string>(10);
  const [goldEvery, setGoldEvery] = useState<number | string>(0);
  const [qualify, setQualify] = useState<number | string>(0);
  const [share, setShare] = useState<number | string>(70);
  const [spanLabels, setSpanLabels] = useState(SPAN_LABELS);
  const [judge, setJudge] = useState<string | null>(null);
  const [limit, setLimit] = useState<number | string>("");
  const { about, fewest, most, entrants: number } = TASKS[task];
  const best = standing.data?.items.map((one) => one.entrant) ?? names;
  const known = standing.data?.items.some((one) => one.standing !== null) ?? false;
  const entrants = (chosen ?? best).slice(0, most);
  const scored = task === "likert";
  const named = criteria.filter((one) => one.name.trim());
  const make = useMutation({
    mutationFn: () =>
      createCampaign(project, evaluation.id, {
        name: name.trim() || null,
        task_type: task,
        instructions,
        criteria: scored || task === "ranking" ? named : [],
        entrants,
        overlap: Number(overlap),
        lock_seconds: Math.round(60 * Number(minutes)),
        gold_every: Number(goldEvery),
        qualify_items: task === "correction" ? 0 : Number(qualify),
        qualify_share: Number(share) / 100,
        judge: task === "correction" ? null : judge,
        span_labels: spanLabels,
        limit: limit === "" ? null : Number(limit),
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  const error = (field: string) => placeOf(make.error, field);
  const turnTo = (next: TaskType) => {
    setTask(next);
    setCriteria(next === "likert" ? [QUALITY] : []);
  };
  return (
    <SendForm
      send={make}
      label="Open the campaign"
      disabled={entrants.length < fewest || (scored && !named.length)}
    >
      <Input.Wrapper label="Task" description={about} inputWrapperOrder={["label", "input", "description"]}>
        <SegmentedControl
          fullWidth
          size="xs"
          aria-label="Task"
          mb={4}
          value={task}
          onChange={(value) => turnTo(value as TaskType)}
          data={Object.entries(TASK_NAMES).map(([value, label]) => ({ value, label }))}
        />
      </Input.Wrapper>
      <TextInput
        label="Name"
        description="Annotators see it, so it should not reveal which models are compared"
        placeholder="generated if empty"
        value={name}
        error={error("name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Textarea
        label="Instructions"
        description="What a good answer is, in your words"
        autosize
        minRows={2}
        value={instructions}
        error={error("instructions")}
        onChange={(event) => setInstructions(event.currentTarget.value)}
      />
      <MultiSelect
        label="Entrants"
        description={
          known && chosen === null && best.length > most
            ? `${number}; the best so far, by people, judges and reward models`
            : number
        }
        data={names}
        value={entrants}
        maxValues={most}
        error={error("entrants")}
        onChange={setChosen}
      />
      {(scored || task === "ranking") && (
        <Criteria scored={scored} criteria={criteria} onChange={setCriteria} error={error("criteria")} />
      )}
      {task !== "correction" && evaluation.judges.length > 0 && (
        <Select
          label="Judge's suggestion"
          description="Annotators see this judge's order or scores, without its name, and can hide them"
          placeholder="none"
          clearable
          data={evaluation.judges.map((one) => one.name)}
          value={judge}
          error={error("judge")}
          onChange={setJudge}
        />
      )}
      <TagsInput
        label="Labels of flagged passages"
        description="What annotators flag a part of an answer with; none: they flag no parts"
        placeholder={spanLabels.length ? "" : "Type one and press Enter"}
        value={spanLabels}
        maxTags={9}
        error={error("span_labels")}
        onChange={setSpanLabels}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          label="Annotators per prompt"
          description="Two or more show whether they agree"
          min={1}
          max={100}
          allowDecimal={false}
          value={overlap}
          error={error("overlap")}
          onChange={setOverlap}
        />
        <NumberInput
          label="Maximum number of prompts"
          description="Drawn at random; all of them when empty"
          min={1}
          allowDecimal={false}
          value={limit}
          error={error("limit")}
          onChange={setLimit}
        />
        <NumberInput
          label="Time limit"
          description="Minutes for which a prompt is reserved for one annotator"
          min={1}
          max={1440}
          value={minutes}
          error={error("lock_seconds")}
          onChange={setMinutes}
        />
        {task !== "correction" && (
          <>
            <NumberInput
              label="One gold prompt in every"
              description="Prompts whose ranks are known, set later; 0: gold prompts come first"
              min={0}
              max={1000}
              allowDecimal={false}
              value={goldEvery}
              error={error("gold_every")}
              onChange={setGoldEvery}
            />
            <NumberInput
              label="Gold prompts to qualify"
              description="Come first; until they are passed, nothing else is handed out or counts"
              min={0}
              max={50}
              allowDecimal={false}
              value={qualify}
              error={error("qualify_items")}
              onChange={setQualify}
            />
            {Number(qualify) > 0 && (
              <NumberInput
                label="Needed to pass"
                description="Pairs of answers in the known order"
                suffix="%"
                min={50}
                max={100}
                value={share}
                error={error("qualify_share")}
                onChange={setShare}
              />
            )}
          </>
        )}
      </SimpleGrid>
      {entrants.length < fewest && (
        <Text size="xs" c="dimmed">
          This task needs {fewest === 1 ? "an entrant" : "two entrants"}.
        </Text>
      )}
    </SendForm>
  );
}
