import {
  ActionIcon,
  Card,
  Group,
  type InputWrapperProps,
  NumberInput,
  Select,
  SimpleGrid,
  TagsInput,
  TextInput,
} from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { endpointsQuery } from "../../../api/models/endpoints";
import { ANSWERING, modelsQuery } from "../../../api/models/models";
import { type Attribute, SCORE } from "../../../shared/forms/condition";
import { type DecodingChoice, type EntrantDraft, messageAt } from "./draft";
import { useByName } from "../../../shared/forms/useByName";

/** Fields of a line are level whether they have a description or not. */
const ORDER: InputWrapperProps["inputWrapperOrder"] = ["label", "input", "description", "error"];

const ENGINES: { value: EntrantDraft["engine"]; label: string }[] = [
  { value: "transformers", label: "transformers" },
  { value: "vllm", label: "vLLM" },
];
const DECODINGS: { value: DecodingChoice; label: string }[] = [
  { value: "default", label: "usual" },
  { value: "greedy", label: "greedy, temperature 0" },
  { value: "sampled", label: "sampled, temperature 1" },
  { value: "by_category", label: "by category, as MT-Bench" },
  { value: "own", label: "own temperature, length, guidance" },
];

const USUAL_N = 8;

interface Properties {
  project: string;
  draft: EntrantDraft;
  onChange: (draft: EntrantDraft) => void;
  onRemove?: () => void;
  errors: Record<string, string>;
  /** Where the errors of this line are. */
  place: string;
}

const exampleOf = (named: Attribute[]) =>
  named.map((one) => `${one.name}:${one.default ?? one.high}`).join(",") || "5, 0, -5";

/** A model that answers, or an endpoint: with its scores, decoding and number of answers. */
export function EntrantFields({ project, draft, onChange, onRemove, errors, place }: Properties) {
  const models = useByName((name) => modelsQuery(project, { name, role: ANSWERING }), {
    chosen: [draft.kind === "model" ? draft.who : null],
  });
  const rewards = useByName((name) => modelsQuery(project, { name, role: ["reward"] }), {
    chosen: [draft.chooser],
  });
  const endpoints = useQuery(endpointsQuery(project));
  const set = (change: Partial<EntrantDraft>) => onChange({ ...draft, ...change });
  const error = (field: string) => messageAt(errors, `${place}.${field}`);
  const writers = models.data ?? [];
  const chosen = draft.kind === "model" ? writers.find((one) => one.name === draft.who) : undefined;
  const endpoint =
    draft.kind === "endpoint" ? (endpoints.data ?? []).find((one) => one.name === draft.who) : undefined;
  const served = endpoint?.policy_model?.id;
  const policy = draft.kind === "model" ? chosen : writers.find((one) => one.id === served);
  const attributes = policy?.info.condition?.attributes ?? [];
  const named = attributes.filter((one) => one.name !== SCORE);
  const choosers = (rewards.data ?? []).map((one) => one.name);
  const choosing = draft.kind === "model" && draft.chooser !== null;
  const scored = draft.kind === "endpoint" || attributes.length > 0;
  return (
    <Card withBorder p="sm" role="group" aria-label={`Entrant ${draft.who ?? "not chosen yet"}`}>
      <Group align="flex-start" wrap="nowrap" gap="xs">
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 4 }} flex={1} spacing="sm">
          <Select
            inputWrapperOrder={ORDER}
            label="Who answers"
            searchable
            onSearchChange={models.onSearchChange}
            allowDeselect={false}
            placeholder="A model or an endpoint"
            nothingFoundMessage="The project has none that fits"
            data={[
              {
                group: "Models",
                items: writers.map((one) => ({
                  value: `model ${one.name}`,
                  label: `${one.name} · ${one.method ?? one.role}`,
                })),
              },
              {
                group: "Endpoints",
                items: (endpoints.data ?? []).map((one) => ({
                  value: `endpoint ${one.name}`,
                  label: `${one.name} · endpoint`,
                })),
              },
            ]}
            value={draft.who && `${draft.kind} ${draft.who}`}
            error={error(draft.kind)}
            onChange={(value) => {
              if (!value) return;
              const [kind, who] = value.split(" ") as [EntrantDraft["kind"], string];
              const guides = kind === "model" || endpoints.data?.find((one) => one.name === who)?.guides;
              set({ kind, who, scores: [], ...(guides ? {} : { guidance: 1 }) });
            }}
          />
          {scored && (
            <TagsInput
              inputWrapperOrder={ORDER}
              label={named.length ? "Requested attributes" : "Requested scores"}
              description="One entrant for each; if empty, the policy's default"
              placeholder={draft.scores.length ? undefined : exampleOf(named)}
              splitChars={named.length ? [";", " "] : [",", ";", " "]}
              acceptValueOnBlur
              value={draft.scores}
              error={error("score")}
              onChange={(scores) => set({ scores })}
            />
          )}
          <Select
            inputWrapperOrder={ORDER}
            label="Decoding"
            description={draft.decoding === "default" && "Greedy for one answer, sampled for several"}
            data={DECODINGS}
            value={draft.decoding}
            allowDeselect={false}
            error={draft.decoding === "own" ? undefined : error("decoding")}
            onChange={(value) => value && set({ decoding: value as DecodingChoice })}
          />
          {draft.decoding === "own" && (
            <>
              <NumberInput
                inputWrapperOrder={ORDER}
                label="Temperature"
                min={0}
                step={0.1}
                value={draft.temperature}
                error={error("decoding.Decoding.temperature") ?? error("decoding.temperature")}
                onChange={(temperature) => set({ temperature })}
              />
              <NumberInput
                inputWrapperOrder={ORDER}
                label="Maximum answer length"
                description="In tokens; the model's limit when empty"
                min={1}
                allowDecimal={false}
                value={draft.maxNewTokens}
                error={error("decoding.Decoding.max_new_tokens") ?? error("decoding.max_new_tokens")}
                onChange={(maxNewTokens) => set({ maxNewTokens })}
              />
              {(draft.kind === "model" || endpoint?.guides) && (
                <NumberInput
                  inputWrapperOrder={ORDER}
                  label="Guidance"
                  description="How strongly its score is followed; 1 is none"
                  min={0}
                  max={20}
                  step={0.5}
                  value={draft.guidance}
                  error={error("decoding.Decoding.guidance") ?? error("decoding.guidance")}
                  onChange={(guidance) => set({ guidance })}
                />
              )}
            </>
          )}
          <NumberInput
            inputWrapperOrder={ORDER}
            label="Answers per prompt"
            description={choosing ? "One of these is kept" : "About 8 show best of N, and reward by length"}
            min={1}
            max={64}
            allowDecimal={false}
            value={draft.samples}
            error={error("samples") ?? (choosing && error("best_of"))}
            onChange={(samples) => set({ samples })}
          />
          {draft.kind === "model" && (
            <Select
              inputWrapperOrder={ORDER}
              label="Keep the best by"
              description="Best of N: a reward model chooses one answer"
              placeholder="all answers are kept"
              nothingFoundMessage="The project has no reward model"
              data={choosers}
              searchable
              onSearchChange={rewards.onSearchChange}
              clearable
              value={draft.chooser}
              error={error("reward")}
              onChange={(chooser) =>
                set({ chooser, samples: chooser && Number(draft.samples) < 2 ? USUAL_N : draft.samples })
              }
            />
          )}
          <TextInput
            inputWrapperOrder={ORDER}
            label="Name in the report"
            placeholder={draft.who ?? "the model's"}
            value={draft.name}
            error={error("name")}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
          {draft.kind === "model" && (
            <Select
              inputWrapperOrder={ORDER}
              label="Engine"
              description={draft.engine === "vllm" && "Its workers need vLLM's environment"}
              data={ENGINES}
              value={draft.engine}
              allowDeselect={false}
              error={error("engine")}
              onChange={(engine) => engine && set({ engine: engine as EntrantDraft["engine"] })}
            />
          )}
          {draft.kind === "endpoint" && (
            <TextInput
              inputWrapperOrder={ORDER}
              label="Family"
              description="Shows whether a judge prefers its own family"
              placeholder="known from the model's name"
              value={draft.family}
              error={error("family")}
              onChange={(event) => set({ family: event.currentTarget.value })}
            />
          )}
        </SimpleGrid>
        {onRemove && (
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={onRemove}
            aria-label={`Remove entrant ${draft.who ?? ""}`}
          >
            <IconX size={16} />
          </ActionIcon>
        )}
      </Group>
    </Card>
  );
}
