"""What a stage made: files and folders below its `outputs/`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.files.gguf_export import GgufResult
from steerboard_contracts.models import ModelRole
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import SampleKind


class ModelOutput(BaseModel):
    """A finished model folder."""

    type: Literal["model"] = "model"
    name: str = "model"
    path: str
    role: ModelRole


class DatasetOutput(BaseModel):
    """A finished jsonl file of samples, in the order of their future row numbers; labelled ones with their `reward`."""

    type: Literal["dataset"] = "dataset"
    name: str = "data"
    path: str
    kind: SampleKind
    rows: int


class RewardsOutput(BaseModel):
    """A finished jsonl file of `{"row": int, "value": float}` for the rows of input `data`, each row once."""

    type: Literal["rewards"] = "rewards"
    name: str = "rewards"
    path: str
    rows: int


class Answer(BaseModel):
    """One generated text. `finished`: the model ended it, the token limit did not."""

    prompt: str
    score: Condition | None
    n: int
    text: str
    tokens: int
    finished: bool


class AnswersOutput(BaseModel):
    """A JSON list of `Answer`, for prompts given in the config; kept in the run, no dataset is made."""

    type: Literal["answers"] = "answers"
    name: str = "answers"
    path: str


class BenchmarkOutput(BaseModel):
    """A finished `steerboard_contracts.report.benchmark.BenchmarkResult` as JSON."""

    type: Literal["benchmark"] = "benchmark"
    name: str = "benchmark"
    path: str


class AcademicOutput(BaseModel):
    """A finished `steerboard_contracts.report.academic.AcademicResult` as JSON."""

    type: Literal["academic"] = "academic"
    name: str = "academic"
    path: str


class SelectionOutput(BaseModel):
    """A finished `steerboard_contracts.report.selection.SelectionResult` as JSON."""

    type: Literal["selection"] = "selection"
    name: str = "selection"
    path: str


class PairsOutput(BaseModel):
    """A finished folder of inspected pairs (`steerboard_contracts.watching.inspected_pairs`)."""

    type: Literal["pairs"] = "pairs"
    name: str = "pairs"
    path: str
    pairs: int
    steps: list[int]


class CombinationOutput(BaseModel):
    """A finished `steerboard_contracts.report.combination.CombinationResult` as JSON."""

    type: Literal["combination"] = "combination"
    name: str = "combination"
    path: str


class ResponsesOutput(BaseModel):
    """A finished jsonl file of `{position, sample, turns, tokens, finished}`, each prompt with each sample once."""

    type: Literal["responses"] = "responses"
    name: str = "responses"
    path: str
    rows: int


class RewardPercentiles(BaseModel):
    """Raw rewards of `n` labelled rows; `p0_1` is the 0.1th percentile."""

    n: int
    p0_1: float
    p20: float
    p50: float
    p80: float
    p99_9: float


class RewardSummary(BaseModel):
    """A reward model's accuracy on held-out preference pairs, and how its rewards become z units.

    `margins`: reward of chosen less that of rejected, pair by pair; `correct` counts those above 0, ties 1/2.
    `dataset` is where the pairs are from. Without held-out pairs `pairs` is 0. `normaliser` was fitted on
    `normalised_by`. `labelled`: this model's rewards of the labelled rows, where some were given.
    """

    pairs: int = 0
    correct: float = 0.0
    margins: list[float] = []
    dataset: str | None = None
    normaliser: Normaliser | None = None
    normalised_by: str | None = None
    labelled: RewardPercentiles | None = None


class ResponseRewardsOutput(BaseModel):
    """A finished jsonl file of `{entrant, position, sample, value}` for the responses of input `responses`."""

    type: Literal["response_rewards"] = "response_rewards"
    name: str = "rewards"
    path: str
    rows: int
    found: RewardSummary


class VerdictsOutput(BaseModel):
    """A finished jsonl file of `{position, turn, a, b, forth, back}` for the pairs of input `comparisons`: the
    probability that `a` is better when it is shown first and when it is shown second; or of a pair that cannot be
    compared `{position, turn, a, b, detail}`."""

    type: Literal["verdicts"] = "verdicts"
    name: str = "verdicts"
    path: str
    rows: int


class GgufOutput(BaseModel):
    """A finished folder with the GGUF file and its Modelfile."""

    type: Literal["gguf"] = "gguf"
    name: str = "gguf"
    path: str
    result: GgufResult


StageOutput = Annotated[
    ModelOutput
    | DatasetOutput
    | RewardsOutput
    | AnswersOutput
    | BenchmarkOutput
    | AcademicOutput
    | SelectionOutput
    | PairsOutput
    | CombinationOutput
    | ResponsesOutput
    | ResponseRewardsOutput
    | VerdictsOutput
    | GgufOutput,
    Field(discriminator="type"),
]
