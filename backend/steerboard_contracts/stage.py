"""The border between platform and stage process: `stage.json` in, JSON lines and `outputs/` out.

A stage directory:
    stage.json            StageSpec, written by the supervisor (or by hand)
    checkpoints/          a1-step-00000040/ ..., attempt and step in the name, renamed into place last
    outputs/              written under a temporary name, renamed last
The process prints one StageEvent a line on its standard output and nothing else there.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.configs import RunConfig
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.models import ModelRole
from steerboard_contracts.online.answer_groups import AnswerGroup
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.placement import RoleNodes
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import SampleKind
from steerboard_contracts.watching.health import Finding
from steerboard_contracts.watching.inspected_pairs import LivePair
from steerboard_contracts.watching.ledger import Phase, PhaseTime
from steerboard_contracts.watching.probing import ProbeAnswer, ProbePrompt

STAGE_FILE = "stage.json"
# The input of a `base` stage whose model was uploaded.
UPLOADED = "uploaded"
# {"files": {NAME: SHA-256}} of all other files of a checkpoint's folder, which has no folders below it.
CHECKPOINT_MANIFEST = "manifest.json"
_CHECKPOINT = re.compile(r"a(\d+)-step-(\d{8,})")


def checkpoint_name(attempt: int, step: int) -> str:
    return f"a{attempt}-step-{step:08d}"


def checkpoint_place(name: str) -> tuple[int, int] | None:
    """(step, attempt) of a checkpoint's name, by which the newest is the largest; None of any other name."""
    match = _CHECKPOINT.fullmatch(name)
    return (int(match[2]), int(match[1])) if match else None


class DatasetInput(BaseModel):
    """A jsonl file, one sample a line with its kind's fields plus `row` (int), `split` and `half`.

    Labelled rows carry the raw `reward`; `normaliser` turns it into z. Several responses to one prompt have the same
    `group` (`samples.AnswerSample`).
    """

    type: Literal["dataset"] = "dataset"
    name: str
    path: str
    kind: SampleKind
    rows: int
    content_hash: str
    normaliser: Normaliser | None = None


class ModelInput(BaseModel):
    """A local folder that transformers loads, with `steerboard.json` in it."""

    type: Literal["model"] = "model"
    name: str
    path: str
    content_hash: str
    cost_seconds: Annotated[float, Field(description="Device-seconds that training this model took.")] = 0.0
    shared_seconds: Annotated[
        float, Field(description="Device-seconds of the generation and scoring that its training data took.")
    ] = 0.0


class PromptsInput(BaseModel):
    """A jsonl file of an evaluation's prompts: `{position, category, messages, follow_ups}` by position."""

    type: Literal["prompts"] = "prompts"
    name: str
    path: str
    prompts: int


class ResponsesInput(BaseModel):
    """A jsonl file of responses to be scored: `{entrant, position, sample, prompt, response}`, where the prompt is
    everything before the last turn."""

    type: Literal["responses"] = "responses"
    name: str
    path: str
    responses: int


class ComparisonsInput(BaseModel):
    """A jsonl file of pairs to be compared: `{position, turn, a, b, prompt, responses}`, where `responses` are those of
    entrants `a` and `b`."""

    type: Literal["comparisons"] = "comparisons"
    name: str
    path: str
    comparisons: int


StageInput = Annotated[
    DatasetInput | ModelInput | PromptsInput | ResponsesInput | ComparisonsInput, Field(discriminator="type")
]


class Shard(BaseModel):
    """Rows whose place in the input, modulo `count`, equals `index`."""

    index: int = 0
    count: int = 1


class EngineProcess(BaseModel):
    """How a stage starts a process that has vLLM, where it does not run by that Python itself: with its own environment
    and these `variables`."""

    model_config = ConfigDict(extra="forbid")

    python: str
    variables: dict[str, str]


class StageSpec(BaseModel):
    """stage.json. Inputs by name: `model`, `data`, `reward`, `parts.0`, `entrants.0`, `rewards.0`, ...; paths may
    be relative to the stage directory. `folders`: what else of the machine a `base` or `academic` stage may read.
    `caches`: by name of a frozen model, a folder for its log-probs that other runs share."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    attempt: int = 1
    name: str
    config: RunConfig
    inputs: dict[str, StageInput] = {}
    shard: Shard = Shard()
    threads: int | None = None
    disk_reserve_mb: int | None = None  # what checkpoints leave free of their disk (`contracts.disk`)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    folders: LocalFolders = LocalFolders()
    caches: dict[str, str] = {}
    reward_access: RewardAccess = RewardAccess()
    vllm: EngineProcess | None = None
    roles: RoleNodes | None = None


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
    | VerdictsOutput,
    Field(discriminator="type"),
]


class Progress(BaseModel):
    """How far a stage is; `unit` is plural: steps, prompts, rows, answers."""

    type: Literal["progress"] = "progress"
    done: int
    total: int
    unit: str
    phase: str = ""


class Metrics(BaseModel):
    """Values at an optimiser step. Emitting a (name, step) again overwrites it."""

    type: Literal["metrics"] = "metrics"
    step: int
    values: dict[str, float]


class Probed(BaseModel):
    """Answers to a run's probe prompts after an optimiser step, 0 for the model that training starts from; an answer
    for each prompt. `condition`: what the model was asked for. Emitting a step again overwrites it."""

    type: Literal["probed"] = "probed"
    step: int
    condition: Condition | None
    prompts: list[ProbePrompt]
    answers: list[ProbeAnswer]


class Sampled(BaseModel):
    """The answers to one prompt of an optimiser step that sampled. Emitting a (step, place) again overwrites it."""

    type: Literal["sampled"] = "sampled"
    step: int
    group: AnswerGroup


class Inspected(BaseModel):
    """What the model makes of an inspected pair after an optimiser step; `place` among them. Emitting a place again
    overwrites it: while a run goes on, the newest step is kept."""

    type: Literal["inspected"] = "inspected"
    step: int
    place: int
    found: LivePair


class Changed(BaseModel):
    """Settings that changed while the run trained: change `number` came into force at optimiser step `step`."""

    type: Literal["changed"] = "changed"
    number: int
    step: int
    values: dict[str, float]


class HealthFound(Finding):
    """A health rule that holds. Emitting a (step, rule) again changes nothing."""

    type: Literal["health"] = "health"


class Spent(BaseModel):
    """What each phase has taken since the attempt began. A later one replaces it, so none counts twice."""

    type: Literal["spent"] = "spent"
    phases: dict[Phase, PhaseTime]


class Log(BaseModel):
    type: Literal["log"] = "log"
    level: Literal["info", "warning", "error"] = "info"
    message: str


class Checkpointed(BaseModel):
    type: Literal["checkpoint"] = "checkpoint"
    step: int
    path: str


class Succeeded(BaseModel):
    """The last line of a stage that worked. `summary` is a few figures for tables: losses, accuracies, counts."""

    type: Literal["succeeded"] = "succeeded"
    outputs: list[StageOutput]
    summary: dict[str, Any] = {}


class Fix(BaseModel):
    """Changes of a run's config, none of which changes its result by more than rounding, with which it should work.

    `says` puts them in words, such as `micro-batch 2, accumulation 8`.
    """

    changes: dict[str, Any]
    says: str


class Failed(BaseModel):
    """The last line of a stage that could not go on."""

    type: Literal["failed"] = "failed"
    code: str
    detail: str
    hint: str | None = None
    errors: list[ErrorLocation] = []
    retryable: bool = False
    fix: Fix | None = None


class Paused(BaseModel):
    """The last line of a stage that was asked to pause, by a person or a health rule; its checkpoint is in place.
    `by_rule`: the rule's kind."""

    type: Literal["paused"] = "paused"
    step: int
    by_rule: str | None = None
    reason: str = ""


StageEvent = Annotated[
    Progress
    | Metrics
    | Probed
    | Sampled
    | Inspected
    | Changed
    | HealthFound
    | Spent
    | Log
    | Checkpointed
    | Succeeded
    | Paused
    | Failed,
    Field(discriminator="type"),
]
STAGE_EVENT: TypeAdapter[StageEvent] = TypeAdapter(StageEvent)
