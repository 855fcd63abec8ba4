import type { Schemas } from "../../api/client";
import type { Answer, Comparison } from "../../api/models/playground";
import { type Attribute, type Condition, defaultOf, type Form, SCORE } from "../../shared/forms/condition";

type Model = Schemas["ModelOut"];

/** What one column asks for, as the person set it. `target` is `model:NAME` or `endpoint:NAME`. */
export interface Column {
  key: number;
  target: string;
  score: Condition | null;
  temperature: number;
  topP: number;
  maxNewTokens: number | null;
  /** Classifier-free guidance towards the score; 1 is none. */
  guidance: number;
}

interface Message {
  role: string;
  content: string;
}

export interface Draft {
  /** Turns before the question. */
  history: Message[];
  question: string;
  columns: Column[];
  reward: string | null;
  seed: number;
}

export interface Target {
  value: string;
  label: string;
  /** What it can be asked for; null where that is nothing. */
  attributes: Attribute[] | null;
  form: Form | null;
  /** Whether it learned some answers without a score, which guidance starts from. */
  learnedWithout: boolean;
  /** Whether its answers can be guided. Not every endpoint knows how. */
  takesGuidance: boolean;
}

/** Without a score there is nothing to be guided towards. */
export function guides(target: Target): boolean {
  return target.attributes !== null && target.takesGuidance;
}

const DEFAULT_SCORES = [5, 0, -5];
let lastKey = 0;

export function newColumn(target: string, score: Condition | null): Column {
  lastKey += 1;
  return { key: lastKey, target, score, temperature: 0, topP: 1, maxNewTokens: null, guidance: 1 };
}

/** Everything that can answer: models, then endpoints. */
export function targetsOf(models: Model[], endpoints: Schemas["EndpointOut"][]): Target[] {
  const policies = models.filter((model) => model.answers);
  const facts = (model: Model | undefined) => ({
    attributes: model?.info.condition?.attributes ?? null,
    form: model?.info.condition ?? null,
    learnedWithout: !!model?.info.condition?.dropped,
  });
  const own = policies.map((model) => ({
    value: `model:${model.name}`,
    label: model.name,
    takesGuidance: true,
    ...facts(model),
  }));
  const remote = endpoints.map((endpoint) => ({
    value: `endpoint:${endpoint.name}`,
    label: `${endpoint.name} (endpoint)`,
    takesGuidance: endpoint.guides,
    ...facts(models.find((model) => model.id === endpoint.policy_model?.id)),
  }));
  return [...own, ...remote];
}

/** The same steerable model at 5.0, 0 and -5.0, or once with its default; without one, the newest policy once. */
export function firstDraft(targets: Target[], models: Model[], asked?: string): Draft {
  const named = targets.find((target) => target.value === `model:${asked}`);
  const production = models.find((model) => model.stage === "production" && model.info.condition);
  const target =
    named ??
    targets.find((one) => one.value === `model:${production?.name}`) ??
    targets.find((one) => one.attributes) ??
    targets[0];
  const scores = target?.attributes ? firstAsked(target.attributes) : [null];
  return {
    history: [],
    question: "",
    columns: target ? scores.map((score) => newColumn(target.value, score)) : [],
    reward: rewardFor(target, models),
    seed: 0,
  };
}

function firstAsked(attributes: Attribute[]): Condition[] {
  const [only, ...more] = attributes;
  if (!only || more.length || only.name !== SCORE) return [defaultOf(attributes)];
  return [...new Set(DEFAULT_SCORES.map((score) => Math.max(only.low, Math.min(only.high, score))))];
}

/** The reward model that labelled what the policy was trained on, or else the newest one that shares an ancestor with
 * the policy, or else the newest one. */
function rewardFor(target: Target | undefined, models: Model[]): string | null {
  const rewards = models.filter((model) => model.role === "reward");
  const policy = models.find((model) => `model:${model.name}` === target?.value);
  const hash = policy?.info.normaliser?.reward_model_hash ?? policy?.info.lineage?.reward_model;
  const family = ancestors(policy, models);
  const found =
    rewards.find((model) => model.content_hash === hash) ??
    rewards.find((model) => [...ancestors(model, models)].some((id) => family.has(id))) ??
    rewards[0];
  return found?.name ?? null;
}

/** The models that one was trained from, by id. */
function ancestors(model: Model | undefined, models: Model[]): Set<string> {
  const above = new Set<string>();
  let id = model?.parent_id;
  while (id && !above.has(id)) {
    above.add(id);
    id = models.find((one) => one.id === id)?.parent_id;
  }
  return above;
}

export function draftOf(comparison: Comparison): Draft {
  const prompt = comparison.prompt as Message[];
  return {
    history: prompt.slice(0, -1),
    question: prompt.at(-1)?.content ?? "",
    columns: comparison.columns.map((answer) => ({
      ...newColumn(targetOf(answer), answer.score ?? null),
      temperature: answer.decoding.temperature ?? 0,
      topP: answer.decoding.top_p ?? 1,
      maxNewTokens: answer.decoding.max_new_tokens ?? null,
      guidance: answer.decoding.guidance ?? 1,
    })),
    reward: comparison.reward_model?.name ?? null,
    seed: comparison.seed,
  };
}

/** `model:NAME` or `endpoint:NAME`. What has been deleted since still has its name, but not which of the two it was. */
export function targetOf(answer: Answer): string {
  return answer.endpoint ? `endpoint:${answer.endpoint.name}` : `model:${answer.model?.name ?? answer.name}`;
}

/** The request's body. */
export function bodyOf(draft: Draft): Schemas["ComparisonIn"] {
  return {
    prompt: [...draft.history, { role: "user", content: draft.question }] as never,
    columns: draft.columns.map((column) => {
      const [kind, ...name] = column.target.split(":");
      return {
        [kind!]: name.join(":"),
        score: column.score,
        decoding: {
          temperature: column.temperature,
          top_p: column.topP,
          ...(column.maxNewTokens ? { max_new_tokens: column.maxNewTokens } : {}),
          ...(column.guidance === 1 ? {} : { guidance: column.guidance }),
        },
      } as never;
    }),
    reward: draft.reward,
    seed: draft.seed,
  };
}
