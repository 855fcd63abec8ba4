import { Button, Input, MultiSelect, NumberInput, SegmentedControl, Text, TextInput } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createCampaign, standingQuery } from "../../api/evaluation/campaigns";
import { evaluationKeys, placeOf } from "../../api/evaluation/evaluations";
import { TASK_NAMES, type TaskType } from "../../api/evaluation/ranking";
import { SendForm } from "../forms/SendForm";
import { bodyOf, CampaignInstructions, CampaignSettings, NEW, settingsInWords } from "./CampaignSettings";
import { Criteria, type Criterion } from "./Criteria";
import { Questions } from "./Questions";
import { askable, questionOf, type Question } from "./questionKinds";

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
const QUALITY: Criterion = { name: "Quality", description: "", points: 5 };

interface Properties {
  project: string;
  /** By id; null before there is one. */
  evaluation: string | null;
  entrants: string[];
  /** Judges of the evaluation. */
  judges: string[];
  task?: TaskType;
  /** Makes the evaluation where there is none; called again after a failure. */
  prepare?: () => Promise<string>;
  /** With the evaluation that has the campaign. */
  onDone: (evaluation: string) => void;
}

/** What a campaign asks, of whom, and about which entrants of an evaluation. */
export function CampaignForm({
  project,
  evaluation,
  entrants: names,
  judges,
  task: first = "ranking",
  prepare,
  onDone,
}: Properties) {
  const client = useQueryClient();
  const standing = useQuery({
    ...standingQuery(project, evaluation ?? ""),
    enabled: evaluation !== null,
  });
  const [task, setTask] = useState<TaskType>(first);
  const [name, setName] = useState("");
  const [criteria, setCriteria] = useState<Criterion[]>([]);
  const [questions, setQuestions] = useState<Question[]>([]);
  // None: the best ones.
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [settings, setSettings] = useState(NEW);
  const [limit, setLimit] = useState<number | string>("");
  const [more, setMore] = useState(false);
  const { about, fewest, most, entrants: number } = TASKS[task];
  const best = standing.data?.items.map((one) => one.entrant) ?? names;
  const known = standing.data?.items.some((one) => one.standing !== null) ?? false;
  const entrants = (chosen ?? best).slice(0, most);
  const scored = task === "likert";
  const named = criteria.filter((one) => one.name.trim());
  const make = useMutation({
    mutationFn: async () => {
      const of = evaluation ?? (await prepare!());
      await createCampaign(project, of, {
        name: name.trim() || null,
        task_type: task,
        criteria: scored || task === "ranking" ? named : [],
        entrants,
        questions: questions.map(questionOf),
        ...bodyOf(task, settings),
        limit: limit === "" ? null : Number(limit),
      });
      return of;
    },
    // What was refused may be a setting that is folded.
    onError: () => setMore(true),
    onSuccess: async (of) => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone(of);
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
      disabled={entrants.length < fewest || (scored && !named.length) || !questions.every(askable)}
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
      <CampaignInstructions settings={settings} failure={make.error} onChange={setSettings} />
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
      <Questions questions={questions} onChange={setQuestions} error={error("questions")} />
      <NumberInput
        label="Maximum number of prompts"
        description="Drawn at random; all of them when empty"
        min={1}
        allowDecimal={false}
        value={limit}
        error={error("limit")}
        onChange={setLimit}
      />
      <div>
        <Button
          variant="subtle"
          size="compact-sm"
          aria-expanded={more}
          leftSection={more ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
          onClick={() => setMore(!more)}
        >
          Annotators, gold prompts, suggestions and flags
        </Button>
        {!more && (
          <Text size="xs" c="dimmed" pl="xs">
            {settingsInWords(task, settings)}
          </Text>
        )}
      </div>
      {more && (
        <CampaignSettings
          task={task}
          judges={judges}
          settings={settings}
          failure={make.error}
          onChange={setSettings}
        />
      )}
      {entrants.length < fewest && (
        <Text size="xs" c="dimmed">
          This task needs {fewest === 1 ? "an entrant" : "two entrants"}.
        </Text>
      )}
    </SendForm>
  );
}
