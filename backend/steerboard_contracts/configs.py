"""Configs of the run kinds. The server validates with them, launch forms come from their JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, model_validator

from steerboard_contracts.prompts import TemplateName
from steerboard_contracts.samples import Finite, Half, TurnText

RunKind = Literal["base", "train", "generate", "mix", "score", "evaluate", "benchmark", "answer", "reward", "judge"]
# Started by an evaluation, never by a recipe or a launch form.
EVALUATION_RUNS = ("answer", "reward", "judge")
Precision = Literal["auto", "fp32", "bf16"]
Strategy = Literal["ddp", "zero2", "zero3"]

# How work is cut up, kept and spread over devices: fields that change no result by more than rounding, so that a run
# may go on with other ones.
HOW_FIELDS = frozenset(
    {
        *("micro_tokens", "micro_batch", "gradient_checkpointing", "strategy", "offload"),
        *("batch_size", "batch_tokens", "checkpoint_every", "checkpoint_seconds"),
    }
)

Positive = Annotated[Finite, Field(gt=0)]
NonNegative = Annotated[Finite, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


# Where a default comes from; launch forms show it beside the field.
_PAPER = {"source": "arXiv 2308.12050, Hyperparameters"}


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BaseModelConfig(Config):
    """Brings a base model in: a local folder, a hub name, or random weights with a tokenizer trained on the data."""

    run: Literal["base"] = "base"
    source: Annotated[str, Field(description="`random:tiny-llama`, a folder, or a hub name `org/name[@revision]`.")]
    vocabulary: Annotated[int, Field(ge=300, le=262144)] = 4096
    hidden: Annotated[int, Field(ge=32, le=8192)] = 192
    layers: Annotated[int, Field(ge=1, le=128)] = 4
    heads: Count = 6
    max_length: Annotated[int, Field(ge=64)] = 512
    seed: int = 0
    fingerprint: Annotated[str | None, Field(description="Set by the planner: what a folder held when planned.")] = None


class LoraConfig(Config):
    """Low-rank adapters, arXiv 2106.09685: W + alpha / rank B A, of which A and B are learned."""

    rank: Annotated[int, Field(ge=1, le=1024, description="Columns of A and B; the more, the more it can learn.")] = 16
    alpha: Annotated[Positive, Field(description="What the update is multiplied with is alpha / rank.")] = 32.0
    dropout: Annotated[Finite, Field(ge=0, lt=1, description="Of what goes into the adapters.")] = 0.0
    targets: Annotated[
        Literal["linear", "attention"], Field(description="All linear layers, or those of the attention only.")
    ] = "linear"
    quantise: Annotated[
        Literal["none", "nf4"],
        Field(
            description="nf4: hold the base's linear layers in 4 bits while it trains; what is saved is not quantised.",
            json_schema_extra={"source": "QLoRA, arXiv 2305.14314"},
        ),
    ] = "none"
    merge: Annotated[
        bool, Field(description="Save a whole model with the adapters folded in; otherwise adapters over their base.")
    ] = True


class TrainingConfig(Config):
    """What all methods share. Lengths are in tokens."""

    run: Annotated[Literal["train"], Field(description="The kind of run.")] = "train"
    lr: Annotated[Positive, Field(le=1, description="Peak learning rate.", json_schema_extra=_PAPER)] = 5e-6
    batch: Annotated[
        Count,
        Field(
            description="Sequences (pairs for a reward model) in one optimiser step.",
            json_schema_extra=_PAPER,
        ),
    ] = 128
    epochs: Annotated[Positive, Field(description="Passes over the training rows; may be a fraction.")] = 1.0
    max_steps: Annotated[Count | None, Field(description="Stop after this many optimiser steps.")] = None
    warmup_ratio: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Share of the steps in which the learning rate rises to its peak.",
            json_schema_extra={"source": "RLHF Workflow, its reward and preference models: cosine, warm-up 0.03"},
        ),
    ] = 0.03
    min_lr_ratio: Annotated[Finite, Field(ge=0, le=1, description="Where the cosine ends, as a share of the peak.")] = (
        0.0
    )
    weight_decay: Annotated[NonNegative, Field(description="AdamW's; norms and biases are not decayed.")] = 0.0
    adam_beta1: Annotated[Finite, Field(ge=0, lt=1, description="AdamW's decay of the gradient's mean.")] = 0.9
    adam_beta2: Annotated[Finite, Field(ge=0, lt=1, description="AdamW's decay of the squared gradient's mean.")] = 0.95
    max_grad_norm: Annotated[Positive, Field(description="Longer gradients are scaled down to this norm.")] = 1.0
    max_length: Annotated[
        Count | None, Field(description="Tokens a sequence may have; the model's own by default.")
    ] = None
    micro_tokens: Annotated[Count, Field(description="Token budget of one forward pass, padding included.")] = 2048
    micro_batch: Annotated[Count | None, Field(description="At most this many sequences in one forward pass.")] = None
    batching: Annotated[
        Literal["auto", "padded", "packed", "padding_free"],
        Field(description="How sequences share a forward pass; `auto` takes what the model and the device allow."),
    ] = "auto"
    precision: Annotated[Precision, Field(description="`auto`: bf16 on a GPU, fp32 on a CPU.")] = "auto"
    gradient_checkpointing: Annotated[
        bool, Field(description="Compute activations again in the backward pass: slower, with less memory.")
    ] = False
    strategy: Annotated[
        Strategy,
        Field(
            description="How the devices of a worker share a run: replicas of the model (ddp), or with DeepSpeed also "
            "its gradients and optimiser states (zero2) or the weights too (zero3) spread over them."
        ),
    ] = "ddp"
    offload: Annotated[
        Literal["none", "optimiser", "all"],
        Field(description="With zero2 or zero3: keep the optimiser, with zero3 also the weights, in host memory."),
    ] = "none"
    lora: Annotated[
        LoraConfig | None,
        Field(description="Learn low-rank adapters (and a reward model's head) only; null learns all weights."),
    ] = None
    learn: Annotated[Literal["last", "all"], Field(description="Which assistant turns are learned.")] = "last"
    template: Annotated[
        TemplateName | None, Field(description="How a conversation becomes text; the model's own by default.")
    ] = None
    seed: Annotated[int, Field(description="Of the order of the samples and all other randomness.")] = 0
    evaluate_every: Annotated[int, Field(ge=0, description="Optimiser steps; 0 evaluates only at the end.")] = 0
    evaluate_rows: Annotated[Count, Field(description="At most this many held-out rows, drawn once.")] = 512
    checkpoint_every: Annotated[int, Field(ge=0, description="Optimiser steps; 0 turns it off.")] = 200
    checkpoint_seconds: Annotated[NonNegative, Field(description="Also after this many seconds; 0 turns it off.")] = (
        300.0
    )

    @model_validator(mode="after")
    def _ways_fit(self) -> TrainingConfig:
        if self.offload != "none" and self.strategy == "ddp":
            raise ValueError("offload needs strategy zero2 or zero3")
        if self.lora is not None and self.lora.quantise != "none" and self.strategy != "ddp":
            raise ValueError("a quantised base needs strategy ddp: DeepSpeed cannot spread its 4-bit weights")
        if self.offload == "all" and self.strategy != "zero3":
            raise ValueError("offload of all needs strategy zero3; zero2 can offload the optimiser")
        return self


class SftConfig(TrainingConfig):
    """Eq. 1 of arXiv 2308.12050."""

    method: Annotated[Literal["sft"], Field(description="The training method.")]


class RewardModelConfig(TrainingConfig):
    """Eq. 2 of arXiv 2308.12050, with an optional margin and centring term."""

    method: Annotated[Literal["reward_model"], Field(description="The training method.")]
    lr: Annotated[Positive, Field(le=1, description="Peak learning rate.", json_schema_extra=_PAPER)] = 9e-6
    epochs: Annotated[
        Positive,
        Field(description="Passes over the training rows; may be a fraction.", json_schema_extra=_PAPER),
    ] = 1.0
    centre: Annotated[NonNegative, Field(description="lambda of (r_w + r_l)^2.")] = 0.0
    use_margin: Annotated[bool, Field(description="Ask for a difference as large as the pair's margin.")] = False
    share_prompt: Annotated[bool, Field(description="Compute the prompt of a pair once.")] = True
    half: Annotated[Half | None, Field(description="Train on one of two disjoint halves of the prompts.")] = None


class MleFilterConfig(TrainingConfig):
    """Eq. 4 of arXiv 2308.12050: SFT on rows with z > threshold."""

    method: Annotated[Literal["mle_filter"], Field(description="The training method.")]
    threshold: Annotated[
        Finite,
        Field(
            description="Rows whose normalised reward z is above this are learned.",
            json_schema_extra=_PAPER,
        ),
    ] = 0.0


class RwrConfig(TrainingConfig):
    """Eq. 5 of arXiv 2308.12050: weights exp(z / beta)."""

    method: Annotated[Literal["rwr"], Field(description="The training method.")]
    beta: Annotated[
        Positive,
        Field(description="Temperature of the weights; the larger, the nearer to SFT.", json_schema_extra=_PAPER),
    ] = 5.0
    self_normalised: Annotated[
        bool, Field(description="Divide by the sum of the batch's weights, so that only their ratios matter.")
    ] = False
    max_weight: Annotated[Positive | None, Field(description="Larger weights are cut to this; null cuts none.")] = 20.0


class DecisionTransformerConfig(TrainingConfig):
    """Eq. 6 of arXiv 2308.12050: SFT behind `<rm_score> a.b`."""

    method: Annotated[Literal["decision_transformer"], Field(description="The training method.")]
    score_scale: Annotated[
        Literal["zscore", "quantile"],
        Field(
            description="What a score means: the normalised reward, or a place among the labelled rewards.",
            json_schema_extra={"source": "arXiv 2308.12050, Offline RLHF: rewards less their mean, over their sd"},
        ),
    ] = "zscore"
    score_step: Annotated[Positive, Field(le=1, description="Scores are rounded to this: 0.01, 0.1, 0.5 or 1.")] = 0.1
    score_limit: Annotated[Positive, Field(description="Scores are cut to lie between minus this and this.")] = 5.0
    default_score: Annotated[
        Finite, Field(description="Requested of the policy where a prompt names no score.", json_schema_extra=_PAPER)
    ] = 5.0


TrainConfig = Annotated[
    SftConfig | RewardModelConfig | MleFilterConfig | RwrConfig | DecisionTransformerConfig,
    Field(discriminator="method"),
]


class Decoding(Config):
    """temperature 0 is greedy. `n` answers for each prompt, each with a seed of its own."""

    temperature: NonNegative = 0.0
    top_p: Annotated[Finite, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    n: Annotated[int, Field(ge=1, le=256)] = 1
    max_new_tokens: Annotated[
        Count | None, Field(description="Tokens of an answer; by default 256, or half of a smaller model's window.")
    ] = None
    stop: list[str] = []


def _decoding(value: Any) -> Any:
    if value == "greedy":
        return {}
    return {"temperature": 1.0} if value == "sampled" else value


DecodingField = Annotated[Decoding, Field(default_factory=Decoding)]

EngineName = Literal["transformers", "vllm"]


class VllmOptions(Config):
    """How vLLM runs a model; only `engine: vllm` reads them. None of them is meant to change a result."""

    tensor_parallel: Annotated[
        int, Field(ge=1, le=64, description="GPUs over which the weights are spread; the worker must own them.")
    ] = 1
    memory_fraction: Annotated[
        Finite,
        Field(gt=0, le=1, description="Share of each GPU's memory for weights and cache; on a CPU nothing reads it."),
    ] = 0.9
    prefix_caching: Annotated[bool, Field(description="Compute what prompts begin with alike only once.")] = True
    max_model_len: Annotated[
        int | None, Field(ge=16, description="Tokens of prompt and answer together; the model's window by default.")
    ] = None
    eager: Annotated[
        bool, Field(description="Neither compile nor capture graphs: a quicker start, a slower engine.")
    ] = False
    load_seconds: Annotated[Positive, Field(description="An engine that is not up after so long has failed.")] = 1800.0
    step_seconds: Annotated[Positive, Field(description="An engine without a step for so long has failed.")] = 300.0


class _WithEngine(Config):
    engine: Annotated[
        EngineName, Field(description="What computes: `vllm` needs its own environment (`make setup-vllm`).")
    ] = "transformers"
    vllm: Annotated[VllmOptions, Field(description="How vLLM runs the model, where it is the engine.")] = VllmOptions()


class _WithDecoding(_WithEngine):
    decoding: DecodingField
    batch_size: Annotated[Count, Field(description="Sequences decoded together.")] = 64
    precision: Precision = "auto"
    seed: int = 0

    @model_validator(mode="before")
    @classmethod
    def _named_decoding(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("decoding"), str):
            return {**value, "decoding": _decoding(value["decoding"])}
        return value


class GenerateConfig(_WithDecoding):
    """Answers for the prompts of input `data`, or for the `prompts` given here, at each of `scores`."""

    run: Literal["generate"] = "generate"
    endpoint: Annotated[
        str | None,
        Field(description="Instead of a model: one of the project's endpoints, asked for dataset rows."),
    ] = None
    prompts: Annotated[list[TurnText], Field(description="Instead of a dataset: prompts of one user turn.")] = []
    scores: Annotated[list[Finite], Field(description="With `prompts`: one answer for each score.")] = []
    score: Annotated[Finite | None, Field(description="Requested score, for a decision-transformer policy.")] = None
    limit: Annotated[Count | None, Field(description="At most this many prompts, drawn at random.")] = None
    split: Literal["train", "held_out", "all"] = "train"
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


class MixPart(Config):
    """One source of a mixture. `share` is a fraction of `size`; `auto` parts share what is left by their row counts."""

    share: Annotated[Finite, Field(gt=0, le=1)] | Literal["auto"] = "auto"
    side: Literal["chosen", "rejected", "both"] = "both"


class MixConfig(Config):
    run: Literal["mix"] = "mix"
    parts: Annotated[list[MixPart], Field(min_length=1)]
    size: Count = 100_000
    seed: int = 0

    @model_validator(mode="after")
    def _shares_fit(self) -> MixConfig:
        fixed = sum(p.share for p in self.parts if p.share != "auto")
        if fixed > 1 + 1e-9:
            raise ValueError(f"the shares add up to {fixed:g}, which is more than 1")
        return self


class ScoreConfig(_WithEngine):
    run: Literal["score"] = "score"
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


class Entrant(Config):
    """One model of an evaluation, once for each score (once without a score where `scores` is empty)."""

    scores: list[Finite] = []


class EvaluateConfig(_WithDecoding):
    run: Literal["evaluate"] = "evaluate"
    entrants: Annotated[list[Entrant], Field(min_length=1)]
    prompts: Annotated[Count, Field(description="At most this many held-out prompts.")] = 200
    bootstrap: Annotated[int, Field(ge=100, le=100_000)] = 2000
    quality: Annotated[
        Literal["synthetic"] | None, Field(description="Known quality of answers, for the synthetic demo data.")
    ] = None
    examples: Annotated[int, Field(ge=0, le=50)] = 3


class BenchmarkConfig(_WithEngine):
    """A reward model scores both sides of every pair: how often is the chosen one above the rejected one? RewardBench's
    sections where the pairs are its own."""

    run: Annotated[Literal["benchmark"], Field(description="The kind of run.")] = "benchmark"
    batch_tokens: Annotated[
        Count, Field(description="Token budget of one forward pass, padding included; it changes no result.")
    ] = 8192
    precision: Annotated[
        Precision,
        Field(
            description="`auto`: bf16 on a GPU, fp32 on a CPU. Lower precision makes more ties, which are lost.",
            json_schema_extra={"source": "The score run's: the rewards are those that it would give"},
        ),
    ] = "fp32"


MOST_SAMPLES = 64


class AnswerConfig(_WithDecoding):
    """An entrant of an evaluation answers its prompts. Started by the evaluation, never by a recipe.

    `prompts_hash` stands for the prompts where a finished equal run is looked for, `endpoint` for who is asked when
    it is a server elsewhere. `temperatures`, by category of the prompt, go before the decoding's own.
    """

    run: Literal["answer"] = "answer"
    evaluation: UUID
    entrant: UUID
    prompts_hash: str = ""
    endpoint: str | None = None
    score: Annotated[Finite | None, Field(description="Requested score, for a decision-transformer policy.")] = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES, description="Answers to each prompt.")] = 1
    temperatures: dict[str, NonNegative] = {}


class RewardConfig(_WithEngine):
    """A reward model scores the responses of an evaluation that it has not scored yet. Started by the evaluation."""

    run: Literal["reward"] = "reward"
    evaluation: UUID
    assessment: UUID
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    seed: int = 0


class JudgeConfig(Config):
    """A judge of an evaluation is asked for its verdicts. Started by the evaluation, never by a recipe."""

    run: Literal["judge"] = "judge"
    evaluation: UUID
    judge: UUID


def _kind_of(value: Any) -> str:
    run = value.get("run") if isinstance(value, dict) else getattr(value, "run", None)
    return str(run)


RunConfig = Annotated[
    Annotated[BaseModelConfig, Tag("base")]
    | Annotated[TrainConfig, Tag("train")]
    | Annotated[GenerateConfig, Tag("generate")]
    | Annotated[MixConfig, Tag("mix")]
    | Annotated[ScoreConfig, Tag("score")]
    | Annotated[EvaluateConfig, Tag("evaluate")]
    | Annotated[BenchmarkConfig, Tag("benchmark")]
    | Annotated[AnswerConfig, Tag("answer")]
    | Annotated[RewardConfig, Tag("reward")]
    | Annotated[JudgeConfig, Tag("judge")],
    Discriminator(_kind_of),
]

RUN_CONFIG: TypeAdapter[RunConfig] = TypeAdapter(RunConfig)
