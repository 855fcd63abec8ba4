"""The report of an evaluation as one JSON document: every figure with its n and its 95% interval.

docs/evaluation.md explains how each is computed.
"""

from __future__ import annotations

import datetime as dt
from uuid import UUID

from pydantic import BaseModel, Field

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.report.academic import EntrantAcademic
from steerboard_contracts.report.correlations import Correlations
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import By
from steerboard_contracts.report.sections.costs import EntrantCost
from steerboard_contracts.report.sections.entrants import Contamination, EntrantRow, LengthRatio
from steerboard_contracts.report.sections.fluency import Fluency
from steerboard_contracts.report.sections.frontier import Frontier
from steerboard_contracts.report.sections.headline import Headline
from steerboard_contracts.report.sections.human import HumanReport
from steerboard_contracts.report.sections.judges import JudgeReport, JuryReport
from steerboard_contracts.report.sections.recipe import RecipeSection
from steerboard_contracts.report.sections.rewards import RewardReport, RewardSum


class AgreementRow(BaseModel):
    """Two sources on the same items. `spearman`, `kendall` (tau-b): over entrants' mean scores; `item`: share of
    entrant pairs of items on which both say the same, a tie of one of them counting 1/2."""

    a_by: By
    a: str
    b_by: By
    b: str
    entrants: int
    items: int
    spearman: Estimate
    kendall: Estimate
    item: Estimate


class HackingRow(BaseModel):
    """Compares with the baseline: does an entrant's training reward rise while what is independent of it does not?

    `alarm` is null where that cannot be decided; `reasons` say why, or what is missing. `training_reward` and
    `independent` are win rates, `difference` that of the two on the same items.
    """

    entrant: str
    vs: str
    alarm: bool | None
    reasons: list[str]
    training_reward: Estimate | None
    independent: Estimate | None
    independent_by: str | None
    difference: Estimate | None = None
    length_ratio: Estimate


class WinRateDifference(BaseModel):
    """The win rate of `a` over `b` by a reward model less that by another source, on the items that both have."""

    reward_model: str
    by: By
    source: str
    a: str
    b: str
    difference: Estimate


class MethodsRow(BaseModel):
    """Table 2 of the paper: an entrant by every source that assesses it. Win rates against the baseline entrant, over
    all answers, length-matched and length-adjusted (`length_matched` and `length_adjusted` of a pair)."""

    entrant: str
    method: str | None
    score: Condition | None
    length: Estimate
    reward: dict[str, Estimate]
    reward_win_rate: dict[str, Estimate]
    judge: dict[str, Estimate]
    judge_win_rate: dict[str, Estimate]
    human: dict[str, Estimate]
    human_win_rate: dict[str, Estimate]
    jury: dict[str, Estimate] = {}
    jury_win_rate: dict[str, Estimate] = {}
    reward_length_matched: dict[str, Estimate] = {}
    judge_length_matched: dict[str, Estimate] = {}
    human_length_matched: dict[str, Estimate] = {}
    jury_length_matched: dict[str, Estimate] = {}
    reward_length_adjusted: dict[str, Estimate] = {}
    judge_length_adjusted: dict[str, Estimate] = {}
    human_length_adjusted: dict[str, Estimate] = {}
    jury_length_adjusted: dict[str, Estimate] = {}


class RankShare(BaseModel):
    """Figure 6 of the paper: how often an entrant has each rank, by people of a campaign or a judge.

    A tie has its share in each of the ranks that it takes. `mean_score`: the mean of N + 1 - rank.
    """

    by: By
    source: str
    entrant: str
    shares: list[float]
    n: int
    mean_score: Estimate | None = None


class Unfinished(BaseModel):
    """Something under way or failed. Without `by` every figure may depend on it, else those of the source alone."""

    words: str
    by: By | None = None
    source: str | None = None


# Raised with every change of what a figure means or of which there are, so that kept reports are computed again.
FIGURES_VERSION = 3


class EvaluationReport(BaseModel):
    """`unfinished`: what is still in progress or has failed, in words; the figures cover what exists. `recipe`: the
    paper's claims, if a recipe's stage started the evaluation and has ended; that stage keeps the whole report of this
    moment. `reward_correlations`: between reward models, over the answers that all of them have scored.
    `evaluation_id` is null in what a stage of release 0.1 kept, which had no evaluation."""

    evaluation: str
    evaluation_id: UUID | None
    version: int
    figures_version: int = Field(0, description="Version of Steerboard's figures; 0 in reports that had none.")
    computed_at: dt.datetime
    seconds: float
    prompts: int
    turns: int
    finished: bool
    unfinished: list[str]
    baseline: str | None
    entrants: list[EntrantRow]
    methods: list[MethodsRow]
    ranks: list[RankShare]
    human: list[HumanReport]
    judges: list[JudgeReport]
    juries: list[JuryReport] = []
    rewards: list[RewardReport]
    reward_correlations: Correlations | None = None
    reward_sums: list[RewardSum] = []
    agreement: list[AgreementRow]
    contamination: Contamination
    hacking: list[HackingRow]
    win_rate_differences: list[WinRateDifference]
    warnings: list[str]
    length_ratios: list[LengthRatio] = []
    unfinished_parts: list[Unfinished] = []
    prompts_from: str = Field("", description="`held-out rows of things`, `prompt set mine`.")
    held_out_changes: list[HeldOutChange] = Field(
        [], description="Versions of datasets that changed held-out rows on which figures here are measured."
    )
    recipe: RecipeSection | None = None
    academic: list[EntrantAcademic] = Field([], description="Academic benchmarks of the entrants that are models.")
    frontier: Frontier | None = Field(None, description="Where the evaluation names a model to compare with.")
    fluency: Fluency | None = Field(None, description="Whether the answers are still fluent.")
    headline: Headline | None = Field(None, description="Who wins, by how much, and with which reservations.")
    costs: list[EntrantCost] = Field([], description="Costs of the entrants that are models of the registry.")
