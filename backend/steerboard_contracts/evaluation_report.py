"""The report of an evaluation as one JSON document: every figure with its n and its 95% interval.

docs/evaluation.md says how each is computed.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal
from uuid import UUID

from pydantic import BaseModel

from steerboard_contracts.benchmark import FinishedBenchmark
from steerboard_contracts.estimate import Estimate as Estimate  # taken from here with the rows that hold it

By = Literal["human", "judge", "reward"]


class EntrantRow(BaseModel):
    """One entrant. Lengths in characters of all turns; `truncated`: share of answers that the token limit ended.

    `trained_on`: content hashes of the reward models upstream of it; `origin_known`: whether those are all of them.
    """

    name: str
    source: Literal["model", "endpoint", "import"]
    method: str | None
    score: float | None
    family: str | None
    model: str | None
    content_hash: str | None
    responses: int
    missing: int
    length: Estimate
    truncated: float | None
    trained_on: list[str] = []
    origin_known: bool = False


class ScoreRow(BaseModel):
    """An entrant's mean: rank score N + 1 - r for people, 1 to 10 for judges, z or raw reward for reward models."""

    entrant: str
    mean: Estimate


class PairRow(BaseModel):
    """`a` against `b` on the same items. `win_rate` = (wins + ties/2) / n; `difference` of the mean scores a - b.

    `p` and `p_holm`: Wilcoxon signed-rank over items, Holm over all pairs of the table. `significant`: `p_holm` below
    0.05, and the ranks favour the same entrant as the mean.
    """

    a: str
    b: str
    wins: float
    ties: float
    losses: float
    win_rate: Estimate
    difference: Estimate | None = None
    p: float | None = None
    p_holm: float | None = None
    significant: bool = False


class Friedman(BaseModel):
    statistic: float
    p: float
    entrants: int
    items: int


class Strength(BaseModel):
    """Bradley-Terry, scaled so that the strengths have a geometric mean of 1."""

    entrant: str
    strength: Estimate


class Comparison(BaseModel):
    """What one source (people of a campaign, a judge, a reward model) says of the entrants.

    `winner` is significant after Holm against every rival, else None; `why` says so in a sentence.
    """

    scores: list[ScoreRow]
    pairs: list[PairRow]
    friedman: Friedman | None
    bradley_terry: list[Strength]
    items: int
    winner: str | None
    why: str


class AnnotatorRow(BaseModel):
    """`first_best`: how often the answer shown first is ranked best; `longer_better`: how often the longer of two is.
    `gold`: share of pairs of gold items in the known order."""

    annotator: str
    rankings: int
    skipped: int
    flagged: int
    median_seconds: float | None
    first_best: Estimate
    expected_first_best: float | None
    longer_better: Estimate
    gold: Estimate


class KappaRow(BaseModel):
    """Cohen's kappa of two annotators over the ordered pairs (better, tie, worse) of items that both ranked."""

    a: str
    b: str
    kappa: float | None
    n: int


class HumanReport(BaseModel):
    campaign: str
    criterion: str | None
    state: str
    items: int
    done_items: int
    overlap: int
    rankings: int
    comparison: Comparison
    alpha: Estimate
    annotators: list[AnnotatorRow]
    kappas: list[KappaRow]
    warnings: list[str]


class SelfPreference(BaseModel):
    """How often a judge prefers answers of its own family to others', beside what the other sources say of the same.

    `others`: by source, on the same items; a preference above theirs is the judge's own.
    """

    family: str
    own: Estimate
    others: dict[str, Estimate] = {}


class JudgeBiases(BaseModel):
    """`expected_first_wins`: what an unbiased judge gives: 1/2 for pairs, 1/N for N answers at once."""

    first_wins: Estimate
    longer_wins: Estimate
    flip_rate: Estimate
    self_preference: SelfPreference | None
    expected_first_wins: float | None = None


class AlpacaRow(BaseModel):
    """AlpacaEval figures in percent. `length_controlled`: None where its regression cannot be fitted."""

    entrant: str
    win_rate: float
    standard_error: float | None
    discrete_win_rate: float
    n_wins: int
    n_losses: int
    n_ties: int
    n: int
    length_controlled: float | None
    average_length: float | None


class ArenaRow(BaseModel):
    """Arena-Hard: win rate against the baseline in percent, with the percentile interval of 100 bootstraps."""

    entrant: str
    win_rate: float
    low: float | None
    high: float | None
    n: int


class SingleRow(BaseModel):
    """FastChat's single-answer grading: means by turn and category."""

    entrant: str
    turn_1: float | None
    turn_2: float | None
    average: float | None
    n: int
    by_category: dict[str, float]


class JudgeReport(BaseModel):
    """`verdicts` counts all, superseded ones apart. `valid` is False when too many of them tell nothing."""

    judge: str
    style: str
    model: str
    imported: bool
    state: str
    verdicts: int
    ok: int
    unparsed: int
    refused: int
    errors: int
    superseded: int
    unparsed_rate: float
    unparsed_threshold: float
    valid: bool
    prompt_tokens: int | None
    completion_tokens: int | None
    comparison: Comparison
    biases: JudgeBiases
    alpaca_eval: list[AlpacaRow] = []
    arena_hard: list[ArenaRow] = []
    single: list[SingleRow] = []
    warnings: list[str]


class Bin(BaseModel):
    low: float
    high: float
    n: int
    mean: float | None = None


class LengthCell(BaseModel):
    """Reward-length Pearson over the samples of one prompt by one entrant; None where either is constant."""

    entrant: str
    position: int
    r: float | None
    n: int


class BestOfN(BaseModel):
    """Mean over prompts of the expected best of n drawn without replacement from the samples that there are."""

    entrant: str
    n: list[int]
    reward: list[Estimate]


class Calibration(BaseModel):
    """Held-out pairs by predicted probability sigma(chosen - rejected) of the side that the model prefers."""

    bins: list[Bin]
    accuracy_by_bin: list[float | None]
    expected_error: float | None


class RewardReport(BaseModel):
    """`trained`: entrants that were trained on this model's rewards, for whom it is no independent judge.

    `comparison` is in `units`: z by the model's normaliser, raw where it has none. `raw`: the means as the model
    gives them. `benchmarks`: the newest of this model on each dataset of pairs, whichever evaluation it is in.
    """

    reward_model: str
    content_hash: str
    state: str
    trained: list[str]
    comparison: Comparison
    units: Literal["z", "raw"] = "raw"
    raw: list[ScoreRow] = []
    accuracy: Estimate
    calibration: Calibration | None
    histogram_raw: dict[str, list[Bin]]
    histogram_z: dict[str, list[Bin]]
    length_correlation: list[LengthCell]
    best_of_n: list[BestOfN]
    warnings: list[str]
    benchmarks: list[FinishedBenchmark] = []


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


class SeenPrompt(BaseModel):
    position: int
    question_id: str
    match: Literal["exact", "near"]
    dataset: str
    row: int
    overlap: float


class Contamination(BaseModel):
    checked: list[str]
    prompts: int
    exact: int
    near: int
    seen: list[SeenPrompt]


class HackingRow(BaseModel):
    """Against the baseline: does its training reward rise while what is independent of it does not?

    `alarm` is null where that cannot be told; `reasons` say why, or what is missing. The estimates are win rates.
    """

    entrant: str
    vs: str
    alarm: bool | None
    reasons: list[str]
    training_reward: Estimate | None
    independent: Estimate | None
    independent_by: str | None
    length_ratio: Estimate


class MethodsRow(BaseModel):
    """Table 2 of the paper: an entrant by every source that speaks of it. Win rates against the baseline entrant."""

    entrant: str
    method: str | None
    score: float | None
    length: Estimate
    reward: dict[str, Estimate]
    reward_win_rate: dict[str, Estimate]
    judge: dict[str, Estimate]
    judge_win_rate: dict[str, Estimate]
    human: dict[str, Estimate]
    human_win_rate: dict[str, Estimate]


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


class LengthRatio(BaseModel):
    """Characters of `a`'s answers over those of `b`'s, of the prompts that both answered."""

    a: str
    b: str
    ratio: Estimate


class EvaluationReport(BaseModel):
    """`unfinished`: what is still under way, in words; the figures are of what is there."""

    evaluation: str
    evaluation_id: UUID
    version: int
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
    rewards: list[RewardReport]
    agreement: list[AgreementRow]
    contamination: Contamination
    hacking: list[HackingRow]
    warnings: list[str]
    length_ratios: list[LengthRatio] = []


class GateRuleResult(BaseModel):
    """One rule with what it was held against. `outcome` invalid: it cannot be decided; `why` says what is missing."""

    rule: dict[str, object]
    text: str
    value: float | bool | None
    bound: float | bool | None
    outcome: Literal["pass", "fail", "invalid"]
    why: str


class GateVerdict(BaseModel):
    evaluation: str
    evaluation_id: UUID
    verdict: Literal["pass", "fail", "invalid"]
    rules: list[GateRuleResult]
    why: list[str]
