import {
  Accordion,
  Button,
  MultiSelect,
  Radio,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { endpointsQuery } from "../../../api/models/endpoints";
import { type Evaluation, evaluationKeys, placeOf } from "../../../api/evaluation/evaluations";
import { modelsQuery } from "../../../api/models/models";
import { addJudge, judgeEstimateQuery, type JudgeStyle } from "../../../api/evaluation/judges";
import { useMay } from "../../../api/accounts/session";
import { ActionRow } from "../../../shared/ActionBar";
import { count, short, counted } from "../../../shared/format/format";
import { criteriaOf } from "./criteria";
import { JudgeSettings, USUAL } from "./JudgeSettings";
import { EndpointForm } from "../../../shared/forms/EndpointForm";
import { useByName } from "../../../shared/forms/useByName";

const STYLES: { style: JudgeStyle; label: string; about: string }[] = [
  {
    style: "multi",
    label: "All answers at once",
    about: "One request per prompt; every answer gets 1 to 10. Answers are unnamed and shuffled.",
  },
  {
    style: "single",
    label: "One answer at a time",
    about: "MT-Bench: each answer gets 1 to 10 by itself, every turn too.",
  },
  {
    style: "rubric",
    label: "By a rubric",
    about: "Each answer by yes or no questions; the weighted share that it meets, from 1 to 10.",
  },
  {
    style: "pairwise",
    label: "Pair by pair",
    about: "MT-Bench: every two answers, in both orders; verdicts that differ make a tie.",
  },
  {
    style: "alpaca_eval",
    label: "AlpacaEval",
    about: "Each entrant against a baseline; gives the length-controlled win rate.",
  },
  {
    style: "arena_hard",
    label: "Arena-Hard",
    about: "Each entrant against a baseline on a five-point scale, in both orders.",
  },
  {
    style: "preference",
    label: "By a preference model",
    about: "Every two answers, in both orders, by a model of this project; its probabilities are averaged.",
  },
];
interface Properties {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}

export function JudgeForm({ project, evaluation, onDone }: Properties) {
  const client = useQueryClient();
  const endpoints = useQuery(endpointsQuery(project));
  const [style, setStyle] = useState<JudgeStyle>("multi");
  const [endpoint, setEndpoint] = useState<string | null>(null);
  const [registering, setRegistering] = useState(false);
  const mayWrite = useMay(project, "write");
  const [model, setModel] = useState<string | null>(null);
  const models = useByName((name) => modelsQuery(project, { name, role: ["preference"] }), {
    chosen: [model],
  });
  const known = (models.data ?? []).map((one) => one.name);
  const [name, setName] = useState("");
  const [family, setFamily] = useState("");
  const [settings, setSettings] = useState(USUAL);
  const [rubric, setRubric] = useState("");
  const names = evaluation.entrants.map((one) => one.name);
  const set = (change: Partial<Schemas["JudgeSettings"]>) => setSettings({ ...settings, ...change });
  const compares = style === "preference";
  const paired = compares || style === "pairwise";
  const against = style === "alpaca_eval" || style === "arena_hard";
  const body: Schemas["JudgeIn"] = {
    name: name.trim() || null,
    style,
    ...(compares ? { model: model ?? "" } : { endpoint: endpoint ?? "" }),
    family: family.trim() || null,
    settings: {
      // A model that compares is asked in its own way.
      ...(compares ? { ...USUAL, entrants: settings.entrants } : settings),
      baseline: against || paired ? settings.baseline : null,
      rubric: style === "rubric" ? criteriaOf(rubric) : null,
    },
  };
  const who = compares ? model : endpoint;
  const [asked] = useDebouncedValue(JSON.stringify(body), 400);
  const estimate = useQuery({
    ...judgeEstimateQuery(project, evaluation, JSON.parse(asked) as Schemas["JudgeIn"]),
    enabled:
      !!who &&
      (!against || !!settings.baseline) &&
      (style !== "rubric" || !!body.settings?.rubric) &&
      asked === JSON.stringify(body),
  });
  const make = useMutation({
    mutationFn: () => addJudge(project, evaluation.id, body),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  const problem = make.error ?? estimate.error;
  const error = (field: string) => placeOf(problem, field);
  if (registering)
    return (
      <Stack>
        <Text size="sm" c="dimmed">
          Register the OpenAI-compatible server of the judge’s model. What you chose for the judge is kept.
        </Text>
        <EndpointForm
          project={project}
          onMade={(made) => {
            setEndpoint(made);
            setRegistering(false);
          }}
          onLeave={() => setRegistering(false)}
        />
      </Stack>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate();
      }}
    >
      <Stack>
        <Radio.Group
          label="Judging style"
          value={style}
          error={error("style")}
          onChange={(value) => setStyle(value as JudgeStyle)}
        >
          <Stack gap={6} mt="xs">
            {STYLES.map((one) => (
              <Radio key={one.style} value={one.style} label={one.label} description={one.about} />
            ))}
          </Stack>
        </Radio.Group>
        {compares ? (
          <Select
            label="Preference model"
            description={
              models.data && !known.length
                ? "There is none yet: train one on a dataset of preferences"
                : "Compares two answers at a time; runs on a worker"
            }
            required
            searchable
            allowDeselect={false}
            placeholder="Choose a preference model"
            data={known}
            onSearchChange={models.onSearchChange}
            value={model}
            error={error("model")}
            onChange={setModel}
          />
        ) : (
          <Select
            label="Endpoint"
            description={
              endpoints.data && !endpoints.data.length
                ? "There is none yet: register the server of the judge's model"
                : "Its model judges. Keys are stored encrypted"
            }
            required
            searchable
            allowDeselect={false}
            placeholder="Choose an endpoint"
            data={(endpoints.data ?? []).map((one) => ({
              value: one.name,
              label: `${one.name} · ${one.model}`,
            }))}
            value={endpoint}
            error={error("endpoint")}
            onChange={setEndpoint}
          />
        )}
        {!compares && mayWrite && (
          <Button
            variant="subtle"
            size="compact-sm"
            style={{ alignSelf: "flex-start" }}
            onClick={() => setRegistering(true)}
          >
            Register an endpoint
          </Button>
        )}
        {style === "rubric" && (
          <Textarea
            label="Rubric"
            description="A yes or no question per line, yes being good; a weight may be before it, as in 2: Is it polite?"
            required
            autosize
            minRows={3}
            value={rubric}
            error={error("settings.rubric")}
            onChange={(event) => setRubric(event.currentTarget.value)}
          />
        )}
        {(against || paired) && (
          <Select
            label="Baseline"
            description={
              against
                ? "The entrant that all others are compared with"
                : "Empty: every entrant with every other"
            }
            data={names}
            required={against}
            clearable={!against}
            value={settings.baseline ?? null}
            error={error("settings.baseline")}
            onChange={(baseline) => set({ baseline })}
          />
        )}
        <MultiSelect
          label="Entrants"
          placeholder={settings.entrants?.length ? undefined : "all"}
          data={names}
          value={settings.entrants ?? []}
          error={error("settings.entrants")}
          onChange={(entrants) => set({ entrants: entrants.length ? entrants : null })}
        />
        <Accordion variant="contained">
          <Accordion.Item value="settings">
            <Accordion.Control>Settings</Accordion.Control>
            <Accordion.Panel>
              <JudgeSettings style={style} settings={settings} set={set} error={error}>
                <TextInput
                  label="Name"
                  placeholder={`made from the ${compares ? "model" : "endpoint"} and the style`}
                  value={name}
                  error={error("name")}
                  onChange={(event) => setName(event.currentTarget.value)}
                />
                <TextInput
                  label="Family"
                  description="Compared with the entrants', to see whether it prefers its own"
                  placeholder="known from the model's name"
                  value={family}
                  error={error("family")}
                  onChange={(event) => setFamily(event.currentTarget.value)}
                />
              </JudgeSettings>
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
        <ActionRow
          error={problem}
          says={
            <Text size="sm" role="status">
              {estimate.data && !estimate.error
                ? compares
                  ? `${counted(estimate.data.requests / 2, "pair")} of answers will be compared, in both orders.`
                  : toPay(estimate.data)
                : `Choose ${compares ? "a preference model" : "an endpoint"} to see the number of requests.`}
            </Text>
          }
        >
          <Button type="submit" disabled={!who} loading={make.isPending}>
            Ask the judge
          </Button>
        </ActionRow>
      </Stack>
    </form>
  );
}

function toPay({ requests, cached, most_cost }: Schemas["JudgeEstimate"]): string {
  const asked = `${count(requests)} ${requests === 1 ? "request" : "requests"}`;
  const most = most_cost == null ? "" : ` At these prices, they cost at most ${short(most_cost)}.`;
  return (
    (cached
      ? `${asked}, of which ${count(cached)} are already answered or equal to others.`
      : `${asked} will be made.`) + most
  );
}
