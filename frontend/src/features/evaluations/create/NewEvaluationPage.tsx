import {
  Button,
  Card,
  Checkbox,
  Group,
  MultiSelect,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
  Title,
} from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { Problem } from "../../../api/client";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { createEvaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import { ANSWERING, modelsQuery } from "../../../api/models/models";
import { useMay } from "../../../api/accounts/session";
import { ActionBar } from "../../../shared/ActionBar";
import { Empty } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { Page } from "../../../shared/Page";
import { answersOf, byLine, emptyEntrant, entrantsOf, messageAt, withModels } from "../entrants/draft";
import { EntrantFields } from "../entrants/EntrantFields";
import { PipelineModels } from "../entrants/PipelineModels";
import { NO_PROMPTS, PromptsChoice, usePromptCount } from "./PromptsChoice";
import { useByName } from "../../../shared/forms/useByName";

const route = getRouteApi("/p/$project/evaluations/new");

export function NewEvaluationPage() {
  const { project } = route.useParams();
  const { model } = route.useSearch();
  const mayRun = useMay(project, "run");
  if (!mayRun) {
    return (
      <Page title="New evaluation">
        <Empty title="Your role is read-only">Starting an evaluation needs the role engineer or owner.</Empty>
      </Page>
    );
  }
  return <Form project={project} model={model ?? null} />;
}

function Form({ project, model }: { project: string; model: string | null }) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [prompts, setPrompts] = useState(NO_PROMPTS);
  const [drafts, setDrafts] = useState(() => [emptyEntrant("model", model)]);
  const [rewards, setRewards] = useState<string[]>([]);
  const [klTo, setKlTo] = useState<string | null>(null);
  const [everything, setEverything] = useState(true);
  const [against, setAgainst] = useState<string[]>([]);
  const scorers = useByName((part) => modelsQuery(project, { name: part, role: ["reward"] }));
  const policies = useByName((part) => modelsQuery(project, { name: part, role: ANSWERING }), {
    chosen: [klTo],
  });
  const datasets = useByName((part) => datasetsQuery(project, part ? { name: part } : undefined));
  const number = usePromptCount(project, prompts);
  const { entrants, lines } = entrantsOf(drafts);
  const create = useMutation({
    mutationFn: () =>
      createEvaluation(project, {
        name: name.trim(),
        description,
        prompts: {
          [prompts.from]: prompts[prompts.from],
          split: prompts.split,
          limit: prompts.limit === "" ? null : Number(prompts.limit),
          seed: 0,
        },
        entrants,
        rewards,
        kl_to: klTo,
        check_against: everything ? null : against,
        seed: 0,
        pool: "default",
      }),
    onSuccess: async (made) => {
      void client.invalidateQueries({ queryKey: evaluationKeys.list(project) });
      await navigate({
        to: "/p/$project/evaluations/$evaluation",
        params: { project, evaluation: made.name },
        search: {},
      });
    },
  });
  const errors = create.error instanceof Problem ? byLine(create.error.places, lines) : {};
  const ready = name.trim() && prompts[prompts.from];
  return (
    <Page
      title="New evaluation"
      about="All entrants answer the same prompts once; people, judges and reward models then assess the same answers."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <Stack gap="lg" maw={1100} mb="lg">
          <Part title="1. Name">
            <TextInput
              label="Name"
              description="Letters, digits, dots, dashes and underscores. Annotators never see it."
              required
              maxLength={128}
              value={name}
              error={messageAt(errors, "name")}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Textarea
              label="Purpose"
              autosize
              minRows={1}
              maxLength={2000}
              value={description}
              error={messageAt(errors, "description")}
              onChange={(event) => setDescription(event.currentTarget.value)}
            />
          </Part>
          <Part title="2. Prompts">
            <PromptsChoice project={project} draft={prompts} onChange={setPrompts} errors={errors} />
          </Part>
          <Part
            title="3. Entrants"
            about="Models and endpoints that answer. Answers made elsewhere can be imported once the evaluation exists."
          >
            {drafts.map((draft, at) => (
              <EntrantFields
                key={draft.key}
                project={project}
                draft={draft}
                onChange={(changed) =>
                  setDrafts(drafts.map((one) => (one.key === draft.key ? changed : one)))
                }
                onRemove={() => setDrafts(drafts.filter((one) => one.key !== draft.key))}
                errors={errors}
                place={`entrants.${at}`}
              />
            ))}
            <Group>
              <Button
                variant="default"
                size="xs"
                leftSection={<IconPlus size={14} />}
                onClick={() => setDrafts([...drafts, emptyEntrant()])}
              >
                Add an entrant
              </Button>
              <PipelineModels project={project} onModels={(names) => setDrafts(withModels(drafts, names))} />
            </Group>
          </Part>
          <Part title="4. Automatic scoring" about="Judges and people assess these answers later.">
            <MultiSelect
              label="Reward models"
              description="They score every answer once all are complete"
              placeholder={rewards.length ? undefined : "none"}
              data={(scorers.data ?? []).map((one) => one.name)}
              onSearchChange={scorers.onSearchChange}
              value={rewards}
              searchable
              error={messageAt(errors, "rewards")}
              onChange={setRewards}
            />
            <Select
              label="KL to"
              description="A model such as the one that the entrants were trained from. It gives the perplexity of their answers, by one forward pass per entrant, and their KL to it, estimated from sampled answers by two"
              placeholder="none"
              data={(policies.data ?? []).map((one) => one.name)}
              onSearchChange={policies.onSearchChange}
              value={klTo}
              searchable
              clearable
              error={messageAt(errors, "kl_to")}
              onChange={setKlTo}
            />
            <Checkbox
              label="Look for the prompts in all data that the entrants were trained on"
              description="Prompts seen in training are poor evidence of a model's quality; they are flagged and counted"
              checked={everything}
              onChange={(event) => setEverything(event.currentTarget.checked)}
            />
            {!everything && (
              <MultiSelect
                label="Look for them in these datasets only"
                data={(datasets.data ?? []).map((one) => one.name)}
                onSearchChange={datasets.onSearchChange}
                value={against}
                searchable
                error={messageAt(errors, "check_against")}
                onChange={setAgainst}
              />
            )}
          </Part>
        </Stack>
        <ActionBar
          error={create.error}
          says={
            <Text size="sm" role="status">
              {tells(entrants.length, number, answersOf(drafts, number ?? 0))}
            </Text>
          }
        >
          <Button type="submit" loading={create.isPending} disabled={!ready}>
            {entrants.length ? "Start the evaluation" : "Create it without entrants"}
          </Button>
        </ActionBar>
      </form>
    </Page>
  );
}

function tells(entrants: number, prompts: number | null, answers: number): string {
  if (prompts === null) return "Choose the prompts.";
  const asked = `${count(prompts)} ${prompts === 1 ? "prompt" : "prompts"}`;
  if (!entrants) return `${asked}, no entrant yet: nothing is answered before one is added.`;
  return `${asked} × ${count(entrants)} ${entrants === 1 ? "entrant" : "entrants"}: ${count(answers)} ${answers === 1 ? "answer" : "answers"} will be made.`;
}

function Part({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  return (
    <Card withBorder>
      <Stack gap="sm">
        <div>
          <Title order={2} size="h4">
            {title}
          </Title>
          {about && (
            <Text size="sm" c="dimmed">
              {about}
            </Text>
          )}
        </div>
        {children}
      </Stack>
    </Card>
  );
}
