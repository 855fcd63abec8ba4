"""The report of a pipeline: its stages, the report that its evaluation's stage kept, and the latter as a flat row for
each entrant, for scripts.

Rewards of rows are in the units of the first reward model, see `PipelineReport.units`.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, model_validator

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.costs import SharedRun
from steerboard_contracts.report.sections.headline import Headline
from steerboard_contracts.report.sections.recipe import (
    Control,
    Example,
    LabelledRewards,
    ReportCheck,
    RewardModelSummary,
)

_FORMER_WIN_RATES = ("win_rate_vs_sft", "independent_win_rate_vs_sft", "judge_win_rate_vs_sft")


class MethodRow(BaseModel):
    """One model at one requested score, or the best of `best_of` of its answers by the reward model `chosen_by`.

    `perplexity`, `empty` and `repeated`: as the evaluation has them (`FluencyRow`).
    Win rates are against the report's `baseline`; None for the baseline itself.
    `variant`: the entrant, where several are of one method, such as those of a sweep.
    `reward_low`/`reward_high`: bootstrap 95% interval over prompts, null for fewer than 8. `entrant` is the model's
    name, `name` that of the entrant in the evaluation, as rules of a gate call it.
    `quality_gain`: by the known quality, the mean difference from the baseline, paired over prompts, with its interval.
    `own_device_seconds`, `total_device_seconds` and `shared_runs`: as the evaluation counts them (`EntrantCost`); null
    where no run here made it, and in reports of earlier versions. `log_prob_seconds`: of the total, what the log-probs
    of its reference took. `device_seconds` is `own_device_seconds`, or in reports of earlier versions that of training
    with the sampling and labelling of its data; null where it is unknown.
    """

    method: str
    name: str | None = None
    entrant: str
    variant: str | None = None
    score: Condition | None
    guidance: float = 1.0
    best_of: int | None = None
    chosen_by: str | None = None
    n: int
    reward_mean: float
    reward_low: float | None
    reward_high: float | None
    independent_reward_mean: float | None = None
    length_mean: float
    truncated: float
    distinct_1: float
    distinct_2: float
    perplexity: float | None = None
    empty: float | None = None
    repeated: float | None = None
    win_rate_vs_baseline: float | None
    independent_win_rate_vs_baseline: float | None
    judge_win_rate_vs_baseline: float | None = None
    quality_mean: float | None = None
    quality_low: float | None = None
    quality_high: float | None = None
    quality_gain: Estimate | None = None
    device_seconds: float | None = None
    own_device_seconds: float | None = None
    total_device_seconds: float | None = None
    shared_runs: list[SharedRun] = []
    log_prob_seconds: float = 0.0

    @model_validator(mode="before")
    @classmethod
    def _from_an_older_report(cls, values: Any) -> Any:
        """Reports stored by earlier versions name SFT as the baseline in their fields."""
        if not isinstance(values, dict):
            return values
        return {
            name.replace("_vs_sft", "_vs_baseline") if name in _FORMER_WIN_RATES else name: value
            for name, value in values.items()
        }


class StageRow(BaseModel):
    name: str
    status: str
    seconds: float
    device_seconds: float
    reused: bool = False


class ReportSummary(BaseModel):
    """The report in words. `verdict`: the text of the report's `headline`, and the only one that may name a winner."""

    verdict: str
    cost: str
    checks: list[ReportCheck]


class EvaluationRef(BaseModel):
    """The evaluation that a report is of."""

    id: UUID
    name: str


class PipelineReport(BaseModel):
    """`units`: z, by `units_of`, or raw where nothing defines a usual reward. `evaluation` is null
    in reports of 0.1, which had none. `warnings`: those of the evaluation's stage, and of the pipeline's runs."""

    evaluation: EvaluationRef | None = None
    stages: list[StageRow] = []
    methods: list[MethodRow]
    reward_model: RewardModelSummary
    control: Control | None
    labelled_rewards: LabelledRewards | None
    prompts: int
    units: Literal["z", "raw"] = "z"
    units_of: str | None = "the labelled data"
    synthetic: bool = False
    quality: KnownQuality | None = None
    examples: list[Example] = []
    warnings: list[str] = []
    training: list[str] = []
    """A line each: which weights a policy's training kept, and what the policy gains by its condition."""
    judge: str | None = None
    """Who compared the answers in addition to the reward models: an LLM at an endpoint, or a preference model."""
    decision: RoundDecision | None = None
    """The decision after the evaluation of a round, where a rule may stop the rounds."""
    headline: Headline | None = None
    """Who won by the evaluation, as it was when the stage ended; null in reports of earlier versions."""
    baseline: str | None = None
    """The method whose answers the win rates are against."""
    summary: ReportSummary | None = None
    """Null while nothing has been compared."""
    report: EvaluationReport | None = None
    """The evaluation's whole report, as it was when the stage ended; null until then."""
