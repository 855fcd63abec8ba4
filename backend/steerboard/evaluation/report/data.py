"""What a report is made of, as arrays: rows are prompts in their order, columns entrants in theirs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steerboard.evaluation.divergence import KlTo
from steerboard.evaluation.report.training import TrainingFacts
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.benchmark import FinishedBenchmark
from steerboard_contracts.report.evaluation import Unfinished
from steerboard_contracts.report.sections.costs import EntrantCost
from steerboard_contracts.report.sections.human import TaskType
from steerboard_contracts.report.sections.judges import Calibration
from steerboard_contracts.report.sections.recipe import RecipeSection

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class EntrantFacts:
    """An entrant. `known_origin`: its lineage was recorded here from the base model on, so what trained it is known.

    `trained_on`: content hashes of the reward models upstream of it, and of the one that chose its answers; and judges
    that rewarded it, by `judge_identity`.
    `summed_rewards`: what its training data's
    rewards were normalised by, where they were a sum of several.
    """

    id: uuid.UUID
    name: str
    source: str
    method: str | None
    family: str | None
    score: Condition | None
    best_of: int | None
    chosen_by: str | None
    samples: int
    model: str | None
    content_hash: str | None
    known_origin: bool
    trained_on: frozenset[str]
    summed_rewards: Normaliser | None = None
    training: TrainingFacts = field(default_factory=TrainingFacts)
    decoding: dict[str, Any] = field(default_factory=dict)

    @property
    def guidance(self) -> float:
        return float(self.decoding.get("guidance", 1.0))


@dataclass(frozen=True)
class PromptFacts:
    position: int
    question_id: str
    category: str | None
    turns: int
    seen: dict[str, Any] | None


@dataclass(frozen=True)
class Answers:
    """One row a response. `characters` (responses, turns), 0 where a turn is missing; `truncated`: NaN if unknown;
    `tokens` of all turns, NaN if unknown; `log_ratio` to the evaluation's `kl_to`, and `log_prob` under it of
    `log_prob_tokens` tokens, in nats, NaN where they were not computed."""

    row: Ints
    entrant: Ints
    sample: Ints
    characters: Ints
    truncated: Floats
    tokens: Floats
    log_ratio: Floats
    log_prob: Floats
    log_prob_tokens: Floats


@dataclass(frozen=True)
class TextFacts:
    """What the texts of an entrant's `answers` come to, see `FluencyRow`."""

    answers: int = 0
    empty: int = 0
    repeated: int = 0
    distinct_1: float = 0.0
    distinct_2: float = 0.0


@dataclass(frozen=True)
class Verdicts:
    """One row a verdict that is not superseded. `b` is -1 where there is none; `a_first` 1, 0, or -1 for unknown.

    `value` is NaN unless `ok`.
    """

    row: Ints
    turn: Ints
    a: Ints
    b: Ints
    a_first: Ints
    value: Floats
    weight: Ints
    ok: Bools

    def entrants(self) -> Ints:
        """The entrants that a verdict is about, with or without a value."""
        return np.unique(np.concatenate([self.a, self.b[self.b >= 0]]))

    def take(self, which: Bools) -> Verdicts:
        """Rows where `which` is True."""
        return Verdicts(**{column.name: getattr(self, column.name)[which] for column in fields(self)})


@dataclass(frozen=True)
class Repeats:
    """Questions asked twice whose verdicts both have a value, one row an item: (n,) each."""

    row: Ints
    first: Floats
    again: Floats


@dataclass(frozen=True)
class JudgeCost:
    """`cost` by the judge's prices, None without; `calibrations`: theirs in addition. `verdicts`: with a value, from
    answers that this judge paid for; `seconds`: of those answers, None where no time was kept."""

    cost: float | None = None
    uncertain: float = 0.0
    calibrations: float | None = None
    verdicts: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class JuryFacts:
    """`judges`: ids in the order given."""

    name: str
    judges: tuple[uuid.UUID, ...]
    rule: Literal["majority", "mean"]


@dataclass(frozen=True)
class JudgeFacts:
    """`statuses`: how many verdicts of each status, superseded ones under `superseded`. `identity`: content hash of a
    preference model of the registry, or what `judge_identity` gives of an LLM. `unreadable`: rows of the imported file
    that were left out; `unordered`: its items with several verdicts that no time orders. `reversed_reviews`: what
    imported reviews of both orders prefer; `one_order`: questions with a review of one order only."""

    id: uuid.UUID
    name: str
    style: str
    model: str
    family: str | None
    identity: str | None
    settings: dict[str, Any]
    imported: bool
    state: str
    prompt_tokens: int | None
    completion_tokens: int | None
    statuses: dict[str, int]
    verdicts: Verdicts
    unreadable: int = 0
    unordered: int = 0
    repeats: Repeats | None = None
    reversed_reviews: Repeats | None = None
    one_order: int = 0
    calibrations: tuple[Calibration, ...] = ()
    cost: JudgeCost = JudgeCost()


@dataclass(frozen=True)
class RewardFacts:
    """`values`, with `row`, `entrant` and `sample` of each: raw rewards of responses. `held_out_changes`: of the pairs
    on which its accuracy was measured."""

    id: uuid.UUID
    name: str
    content_hash: str
    state: str
    normaliser: Normaliser | None
    summary: dict[str, Any] | None
    row: Ints
    entrant: Ints
    sample: Ints
    values: Floats
    benchmarks: list[FinishedBenchmark]
    held_out_changes: list[HeldOutChange]


@dataclass(frozen=True)
class Ranking:
    """One submission. `shown`: columns in the order of the screen; `ranks` by criterion, None for the overall one;
    `scores` by criterion, of a Likert task, from which its ranks follow."""

    row: int
    annotator: str
    shown: tuple[int, ...]
    ranks: dict[str | None, tuple[int, ...]]
    scores: dict[str, tuple[int, ...]] = field(default_factory=dict)
    both_bad: bool = False
    adjudicated: bool = False


@dataclass(frozen=True)
class TaskCounts:
    """What an annotator did besides the rankings themselves. `seconds`: of submitted tasks."""

    skipped: int
    flagged: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class CampaignFacts:
    """`points`: those of each criterion of a Likert task. `gold`: by row, the known rank of each column.
    `rankings`: every annotator's; `counted`: what scores the answers, where a reviewer's decision on an item stands for
    all of its rankings."""

    id: uuid.UUID
    name: str
    state: str
    task_type: TaskType
    overlap: int
    criteria: tuple[str, ...]
    points: dict[str, int]
    entrants: tuple[int, ...]
    items: int
    gold: dict[int, dict[int, float]]
    rankings: tuple[Ranking, ...]
    counted: tuple[Ranking, ...]
    counts: dict[str, TaskCounts]


@dataclass(frozen=True)
class EvaluationData:
    """Everything a report needs, read at one moment. `unfinished`: in the service's words. `recipe`: the paper's
    claims, if a recipe's stage started the evaluation and has ended. `held_out_changes`: of the prompts, and of the
    pairs that judges were calibrated on."""

    id: uuid.UUID
    name: str
    version: int
    seed: int
    checked: list[str]
    unfinished: list[Unfinished]
    prompts_from: str
    prompts: list[PromptFacts]
    entrants: list[EntrantFacts]
    answers: Answers
    texts: list[TextFacts]
    judges: list[JudgeFacts] = field(default_factory=list)
    juries: list[JuryFacts] = field(default_factory=list)
    rewards: list[RewardFacts] = field(default_factory=list)
    campaigns: list[CampaignFacts] = field(default_factory=list)
    held_out_changes: list[HeldOutChange] = field(default_factory=list)
    recipe: RecipeSection | None = None
    kl_to: KlTo | None = None
    costs: list[EntrantCost] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        """(prompts, entrants)."""
        return len(self.prompts), len(self.entrants)

    @property
    def turns(self) -> int:
        return max((prompt.turns for prompt in self.prompts), default=1)

    def names(self) -> list[str]:
        return [entrant.name for entrant in self.entrants]
