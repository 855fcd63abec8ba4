"""The rankings of a campaign and its annotators."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import Comparison

TaskType = Literal["ranking", "pairwise", "likert"]


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
    """`points`: the highest score of a Likert criterion, whose comparison is of the scores themselves; else of N + 1 -
    rank. `both_bad`: how many pairwise choices found neither answer good; they are ties. `adjudicated`: items that a
    reviewer decided, which counts instead of their rankings."""

    campaign: str
    criterion: str | None
    state: str
    task_type: TaskType = "ranking"
    points: int | None = None
    both_bad: int = 0
    adjudicated: int = 0
    items: int
    done_items: int
    overlap: int
    rankings: int
    comparison: Comparison
    alpha: Estimate
    annotators: list[AnnotatorRow]
    kappas: list[KappaRow]
    warnings: list[str]
