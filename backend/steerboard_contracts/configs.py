"""Configs of the run kinds. The server validates with them, launch forms come from their JSON Schema.

What all training runs share is in `training`, what a method adds in `methods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Discriminator, Field, Tag, TypeAdapter, model_validator

from steerboard_contracts.academic import AcademicConfig
from steerboard_contracts.combination import CombineConfig
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Config, Count, NonNegative, Positive, Precision
from steerboard_contracts.fields import RunKind as RunKind
from steerboard_contracts.methods import TrainConfig, needed_method
from steerboard_contracts.samples import Finite, TurnText
from steerboard_contracts.selection import SelectConfig

# How work is cut up, kept and spread over devices: fields that change no result by more than rounding, so that a run
# may continue with other values.
EXECUTION_FIELDS = frozenset(
    {
        *("micro_tokens", "micro_batch", "gradient_checkpointing", "strategy", "offload", "placement"),
        *("batch_size", "sample_batch", "batch_tokens", "checkpoint_every", "checkpoint_seconds"),
        *("inspect_pairs", "inspect_groups", "inspect_group_steps", "probe", "health"),
    }
)


Asked = Annotated[
    Condition | None,
    Field(
        description="Requested score of a policy that is asked with one; of several attributes, a text such as "
        "`helpfulness:4,verbosity:2`."
    ),
]


class BaseModelConfig(Config):
    """Brings a base model in: a local folder, a hub name, or random weights with a tokenizer trained on the data."""

    run: Literal["base"] = "base"
    source: Annotated[
        str,
        Field(
            max_length=4096,
            description="`random:tiny-llama`, a folder that the server may read, or a hub name `org/name[@revision]`.",
        ),
    ]
    vocabulary: Annotated[int, Field(ge=300, le=262144)] = 4096
    hidden: Annotated[int, Field(ge=32, le=8192)] = 192
    layers: Annotated[int, Field(ge=1, le=128)] = 4
    heads: Count = 6
    max_length: Annotated[int, Field(ge=64)] = 512
    seed: int = 0
    fingerprint: Annotated[str | None, Field(description="Set by the planner: what a folder held when planned.")] = None


class Decoding(Config):
    """temperature 0 is greedy. `n` answers for each prompt, each with a seed of its own."""

    temperature: Annotated[NonNegative, Field(description="0 is greedy.")] = 0.0
    top_p: Annotated[
        Finite, Field(gt=0, le=1, description="Draw from the likeliest tokens of this much probability.")
    ] = 1.0
    top_k: Annotated[int, Field(ge=0, description="Draw from this many of the likeliest tokens; 0: from all.")] = 0
    n: Annotated[int, Field(ge=1, le=256, description="Answers for each prompt.")] = 1
    max_new_tokens: Annotated[
        Count | None, Field(description="Tokens of an answer; by default 256, or half of a smaller model's window.")
    ] = None
    stop: list[str] = Field(default=[], description="Texts that end an answer, and are not part of it.")


def _decoding(value: Any) -> Any:
    if value == "greedy":
        return {}
    return {"temperature": 1.0} if value == "sampled" else value


DecodingField = Annotated[Decoding, Field(default_factory=Decoding)]


class _WithDecoding(WithEngine):
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


class Portion(Config):
    """One of several parts of the prompts, by a hash of their text: about equally many, equal ones in the same part."""

    number: Annotated[Count, Field(description="Which part, from 1.")] = 1
    of: Annotated[int, Field(ge=1, le=1000, description="How many parts there are.")] = 1

    @model_validator(mode="after")
    def _one_of_them(self) -> Portion:
        if self.number > self.of:
            raise ValueError(f"there is no part {self.number} of {self.of}")
        return self


class GenerateConfig(_WithDecoding):
    """Answers for the prompts of input `data`, or for the `prompts` given here, at each of `scores`."""

    run: Literal["generate"] = "generate"
    endpoint: Annotated[
        str | None,
        Field(description="Instead of a model: one of the project's endpoints, asked for dataset rows."),
    ] = None
    prompts: list[TurnText] = Field(default=[], description="Instead of a dataset: prompts of one user turn.")
    scores: list[Condition] = Field(default=[], description="With `prompts`: one answer for each score or condition.")
    score: Asked = None
    limit: Annotated[Count | None, Field(description="At most this many prompts, drawn at random.")] = None
    split: Literal["train", "held_out", "all"] = "train"
    portion: Annotated[
        Portion | None, Field(description="Only one of several parts of the prompts, such as that of a round.")
    ] = None
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


class ScoreConfig(WithEngine):
    run: Literal["score"] = "score"
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


MOST_SAMPLES = 64
BestOf = Annotated[
    int | None,
    Field(
        ge=2,
        le=MOST_SAMPLES,
        description="Of so many sampled answers to each prompt, the one that a reward model scores highest.",
    ),
]


class Entrant(Config):
    """One model of an evaluation, once for each score or condition (once with its default where there are none).

    With `best_of`, the reward model of input `best_of.N` chooses for entrant N; its answers are sampled at the
    decoding's temperature, or at 1 where that is 0.
    """

    scores: list[Condition] = Field(default=[])
    best_of: BestOf = None


class EndpointJudge(Config):
    """An LLM at a registered endpoint that judges the answers of an evaluation."""

    endpoint: Annotated[str, Field(min_length=1, max_length=200, description="A registered endpoint, by name.")]
    style: Annotated[
        Literal["pairwise", "single"],
        Field(description="`pairwise`: two answers, in both orders; `single`: one answer, from 1 to 10."),
    ] = "pairwise"
    criteria: Annotated[str | None, Field(max_length=4000, description="What to weigh, in the judge's prompt.")] = None
    requests_per_minute: Annotated[
        Positive | None, Field(le=1_000_000, description="By default as fast as it answers.")
    ] = None
    concurrency: Annotated[int, Field(ge=1, le=64, description="Requests under way at once.")] = 4


class EvaluateConfig(_WithDecoding):
    """An evaluation of held-out prompts. The run itself computes nothing: it starts an evaluation whose answers and
    rewards are runs of their own, and has succeeded when those have."""

    run: Literal["evaluate"] = "evaluate"
    entrants: Annotated[list[Entrant], Field(min_length=1)]
    prompts: Annotated[Count, Field(description="At most this many held-out prompts.")] = 200
    bootstrap: Annotated[int, Field(ge=100, le=100_000)] = 2000
    quality: Annotated[
        Literal["synthetic"] | None, Field(description="Known quality of answers, for the synthetic demo data.")
    ] = None
    examples: Annotated[int, Field(ge=0, le=50)] = 3
    decides: Annotated[
        bool,
        Field(
            description="Of a round: does the judge, or else the first reward model, rate the last entrant lower than "
            "the one before it? That ends the rounds."
        ),
    ] = False
    judge: Annotated[
        EndpointJudge | None,
        Field(description="An LLM that compares the answers; a preference model is given as the input `judge`."),
    ] = None

    @model_validator(mode="after")
    def _has_two_to_compare(self) -> EvaluateConfig:
        if self.decides and len(self.entrants) < 2:
            raise ValueError("`decides` compares the last two entrants, and there is one")
        return self


class BenchmarkConfig(WithEngine):
    """A reward model scores both sides of every pair, or all answers to every prompt: how often is the right one above
    the wrong ones? With the sections of RewardBench, or the domains of RewardBench 2, where the data is theirs."""

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


class AnswerConfig(_WithDecoding):
    """An entrant of an evaluation answers its prompts. Started by the evaluation, never by a recipe.

    `prompts_hash` stands for the prompts where a finished equal run is looked for, `endpoint` for who is asked when
    it is a server elsewhere. `temperatures`, by category of the prompt, override the decoding's own.
    """

    run: Literal["answer"] = "answer"
    evaluation: UUID
    entrant: UUID
    prompts_hash: str = ""
    endpoint: str | None = None
    score: Asked = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES, description="Answers to each prompt.")] = 1
    best_of: BestOf = None
    temperatures: dict[str, NonNegative] = Field(default={})


class RewardConfig(WithEngine):
    """A reward model scores the responses of an evaluation that it has not scored yet. Started by the evaluation.

    `quality`: what is known of the answers to synthetic prompts takes the place of a reward model.
    """

    run: Literal["reward"] = "reward"
    evaluation: UUID
    assessment: UUID
    quality: Literal["synthetic"] | None = None
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    seed: int = 0


class JudgeConfig(Config):
    """A judge of an evaluation is asked for its verdicts. Started by the evaluation, never by a recipe."""

    run: Literal["judge"] = "judge"
    evaluation: UUID
    judge: UUID


class CompareConfig(Config):
    """A preference model, as a judge of an evaluation, compares the answers that it has not compared yet. Started by
    the evaluation, never by a recipe."""

    run: Literal["compare"] = "compare"
    evaluation: UUID
    judge: UUID
    batch_tokens: Count = 8192
    precision: Precision = "fp32"


def _kind_of(value: Any) -> str:
    run = value.get("run") if isinstance(value, dict) else getattr(value, "run", None)
    return str(run)


RunConfig = Annotated[
    Annotated[BaseModelConfig, Tag("base")]
    | Annotated[TrainConfig, Tag("train")]
    | Annotated[GenerateConfig, Tag("generate")]
    | Annotated[MixConfig, Tag("mix")]
    | Annotated[ScoreConfig, Tag("score")]
    | Annotated[CombineConfig, Tag("combine")]
    | Annotated[SelectConfig, Tag("select")]
    | Annotated[EvaluateConfig, Tag("evaluate")]
    | Annotated[BenchmarkConfig, Tag("benchmark")]
    | Annotated[AcademicConfig, Tag("academic")]
    | Annotated[AnswerConfig, Tag("answer")]
    | Annotated[RewardConfig, Tag("reward")]
    | Annotated[JudgeConfig, Tag("judge")]
    | Annotated[CompareConfig, Tag("compare")],
    Discriminator(_kind_of),
]

RUN_CONFIG: TypeAdapter[RunConfig] = TypeAdapter(RunConfig)


def stored_config(config: Mapping[str, Any]) -> RunConfig:
    """Of a run that was created, perhaps where another package was installed.

    Raises `BadInput` (`unknown_method`) where its method is not known here.
    """
    if config.get("run") == "train":
        needed_method(str(config.get("method")))
    return RUN_CONFIG.validate_python(config)
