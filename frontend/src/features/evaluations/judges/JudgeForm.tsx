import {
  Accordion,
  Button,
  Checkbox,
  MultiSelect,
  NumberInput,
  Radio,
  Select,
  SimpleGrid,
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
import { ActionRow } from "../../../shared/ActionBar";
import { count } from "../../../shared/format/format";
import { Link } from "../../../shared/links";

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
const USUAL: Schemas["JudgeSettings"] = {
  both_orders: true,
  blind: true,
  entrants: null,
  baseline: null,
  temperature: null,
  max_tokens: 2048,
  requests_per_minute: null,
  concurrency: 4,
  reference: true,
  unparsed_threshold: 0.05,
  criteria: null,
  seed: 0,
  timeout_seconds: 120,
  attempts: 6,
};

interface Properties {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}

export function JudgeForm({ project, evaluation, onDone }: Properties) {
  const client = useQueryClient();
  const endpoints = useQuery(endpointsQuery(project));
  const models = useQuery(modelsQuery(project));
  const known = (models.data?.items ?? []).filter((one) => one.role === "preference").map((one) => one.name);
  const [style, setStyle] = useState<JudgeStyle>("multi");
  const [endpoint, setEndpoint] = useState<string | null>(null);
  const [model, setModel] = useState<string | null>(null);
  const [name, setName] = useState("");
  const [family, setFamily] = useState("");
  const [settings, setSettings] = useState(USUAL);
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
    },
  };
  const who = compares ? model : endpoint;
  const [asked] = useDebouncedValue(JSON.stringify(body), 400);
  const estimate = useQuery({
    ...judgeEstimateQuery(project, evaluation, JSON.parse(asked) as Schemas["JudgeIn"]),
    enabled: !!who && (!against || !!settings.baseline) && asked === JSON.stringify(body),
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
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate();
      }}
    >
      <Stack>
        <Radio.Group
          label="How it is asked"
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
            value={model}
            error={error("model")}
            onChange={setModel}
          />
        ) : (
          <Select
            label="Endpoint"
            description={
              endpoints.data && !endpoints.data.length ? (
                <>
                  There is none yet.{" "}
                  <Link inherit to="/p/$project/models" params={{ project }}>
                    Register one under Models
                  </Link>
                </>
              ) : (
                "Its model judges. Keys are stored encrypted"
              )
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
              <Settings style={style} settings={settings} set={set} error={error}>
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
              </Settings>
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
        <ActionRow
          error={problem}
          says={
            <Text size="sm" role="status">
              {estimate.data && !estimate.error
                ? compares
                  ? `${count(estimate.data.requests / 2)} pairs of answers will be compared, in both orders.`
                  : toPay(estimate.data)
                : `Choose ${compares ? "a preference model" : "an endpoint"} to see the number of requests.`}
            </Text>
          }
        >
          <Button type="submit" disabled={!who} loading={make.isPending}>
            Ask it
          </Button>
        </ActionRow>
      </Stack>
    </form>
  );
}

function toPay({ requests, cached }: Schemas["JudgeEstimate"]): string {
  const asked = `${count(requests)} ${requests === 1 ? "request" : "requests"}`;
  return cached ? `${asked}, of which ${count(cached)} are answered already.` : `${asked} will be made.`;
}

function Settings({
  style,
  settings,
  set,
  error,
  children,
}: {
  style: JudgeStyle;
  settings: Schemas["JudgeSettings"];
  set: (change: Partial<Schemas["JudgeSettings"]>) => void;
  error: (field: string) => string | undefined;
  children: React.ReactNode;
}) {
  const number = (value: number | string) => (typeof value === "number" ? value : null);
  if (style === "preference")
    return (
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        {children}
      </SimpleGrid>
    );
  return (
    <Stack gap="sm">
      {(style === "pairwise" || style === "arena_hard") && (
        <Checkbox
          label="Ask in both orders"
          description="Judges favour the first answer; twice the requests measure by how much"
          checked={settings.both_orders}
          onChange={(event) => set({ both_orders: event.currentTarget.checked })}
        />
      )}
      {style === "multi" && (
        <Checkbox
          label="Blind"
          description="No names, and an order drawn for each prompt. Off: the paper's fixed order and names, which bias"
          checked={settings.blind}
          onChange={(event) => set({ blind: event.currentTarget.checked })}
        />
      )}
      <Checkbox
        label="Show reference answers"
        description="Of math, reasoning and coding prompts that have one"
        checked={settings.reference}
        onChange={(event) => set({ reference: event.currentTarget.checked })}
      />
      <Textarea
        label="Criteria"
        description="Added to the judge's prompt"
        autosize
        minRows={1}
        value={settings.criteria ?? ""}
        error={error("settings.criteria")}
        onChange={(event) => set({ criteria: event.currentTarget.value || null })}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          label="Requests at once"
          min={1}
          max={64}
          allowDecimal={false}
          value={settings.concurrency}
          error={error("settings.concurrency")}
          onChange={(value) => set({ concurrency: number(value) ?? USUAL.concurrency })}
        />
        <NumberInput
          label="Requests a minute"
          placeholder="no limit"
          min={1}
          value={settings.requests_per_minute ?? ""}
          error={error("settings.requests_per_minute")}
          onChange={(value) => set({ requests_per_minute: number(value) })}
        />
        <NumberInput
          label="Temperature"
          placeholder="0"
          min={0}
          max={2}
          step={0.1}
          value={settings.temperature ?? ""}
          error={error("settings.temperature")}
          onChange={(value) => set({ temperature: number(value) })}
        />
        <NumberInput
          label="Longest verdict"
          description="In tokens"
          min={1}
          max={100_000}
          allowDecimal={false}
          value={settings.max_tokens}
          error={error("settings.max_tokens")}
          onChange={(value) => set({ max_tokens: number(value) ?? USUAL.max_tokens })}
        />
        <NumberInput
          label="Timeout"
          description="Seconds for one request"
          min={1}
          max={3600}
          value={settings.timeout_seconds}
          error={error("settings.timeout_seconds")}
          onChange={(value) => set({ timeout_seconds: number(value) ?? USUAL.timeout_seconds })}
        />
        <NumberInput
          label="Attempts per request"
          min={1}
          max={20}
          allowDecimal={false}
          value={settings.attempts}
          error={error("settings.attempts")}
          onChange={(value) => set({ attempts: number(value) ?? USUAL.attempts })}
        />
        <NumberInput
          label="Invalid above"
          description="Percent of unusable verdicts"
          min={0}
          max={100}
          suffix=" %"
          value={100 * settings.unparsed_threshold}
          error={error("settings.unparsed_threshold")}
          onChange={(value) => set({ unparsed_threshold: (number(value) ?? 5) / 100 })}
        />
        {children}
      </SimpleGrid>
    </Stack>
  );
}
