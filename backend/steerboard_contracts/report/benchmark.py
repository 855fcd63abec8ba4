"""What a benchmark run finds: how often a reward model puts the chosen answer of a pair above the rejected one."""

from __future__ import annotations

import datetime as dt
from uuid import UUID

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate


class SourceAccuracy(BaseModel):
    """Pairs of one source (of RewardBench: of one subset). `source` is null for pairs that name none."""

    source: str | None
    accuracy: Estimate
    ties: int


class RewardBenchSections(BaseModel):
    """RewardBench's sections, accuracies from 0 to 1, subsets weighted as it does; `overall` is their mean, null while
    one of the four is missing.

    `incomplete`: sections that lack subsets, with their names; `unknown`: sources that are no subset of it.
    """

    sections: dict[str, float]
    overall: float | None
    incomplete: dict[str, list[str]]
    unknown: list[str]


class BenchmarkResult(BaseModel):
    """`accuracy`: share of pairs with chosen > rejected, with Wilson's interval; `ties` of equal rewards are lost.

    `sources`: the largest first, empty where no pair names one; `more_sources` are not listed. `rewardbench` is null
    where no source is one of its subsets; it is computed over all sources. Of a preference model: `flip_rate`, the
    share of pairs in which the order of the two decides, and `calibration_error`.
    """

    pairs: int
    ties: int
    accuracy: Estimate
    sources: list[SourceAccuracy] = []
    more_sources: int = 0
    rewardbench: RewardBenchSections | None = None
    flip_rate: float | None = None
    calibration_error: float | None = None


class FinishedBenchmark(BaseModel):
    """The result of a run, and the dataset that its pairs are from."""

    run_id: UUID
    dataset_id: UUID
    dataset: str
    ended_at: dt.datetime
    result: BenchmarkResult
