"""The rankings of a campaign and its annotators."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import Comparison


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
