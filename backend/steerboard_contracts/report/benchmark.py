"""What a benchmark run finds: how often a reward model puts the right answer above the wrong ones."""

from __future__ import annotations

import datetime as dt
from uuid import UUID

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate


class SourceAccuracy(BaseModel):
    """Items of one source (of RewardBench: of one subset). `source` is null for items that name none."""

    source: str | None
    accuracy: Estimate
    ties: int


class RewardBenchSections(BaseModel):
    """RewardBench's sections, accuracies from 0 to 1, subsets weighted as it does; `overall` is their mean, null while
    one of the four is missing.

    `incomplete`: sections that lack subsets, with their names; `unknown`: sources that are not a subset of it.
    """

    sections: dict[str, float]
    overall: float | None
    incomplete: dict[str, list[str]]
    unknown: list[str]


class TiesParts(BaseModel):
    """Parts of RewardBench 2's score of ties, shares of prompts. `tied` and `ref`: prompts in which every right answer
    is above every wrong one. `preferred`: twins in which the right answers of the tied prompt are nearer to each other
    than to the best wrong one; `preferred_hard`: also nearer than the right one of its twin is. `score` is at most
    1.01."""

    prompts: int
    twins: int
    tied: float
    ref: float
    preferred: float
    preferred_hard: float
    margin: float
    score: float


class RewardBench2Domains(BaseModel):
    """RewardBench 2's domains; `overall` is their mean, null while one is missing. `Ties` has the score of `ties`, the
    others the share of prompts won."""

    domains: dict[str, float]
    ties: TiesParts | None
    overall: float | None
    missing: list[str]


class BenchmarkItems(BaseModel):
    """How far the model is right on each item, from 0 to 1, by which two models are compared on the same ones.

    An item is known by a hash of its source and texts; equal ones are one item. Of all `n`, a benchmark of many keeps
    those with the smallest `hashes`, the same ones for every model; `digest` is of the hashes of all. `sources`: by
    item, its place in the result's `sources`, -1 where that does not list its source.
    """

    n: int
    digest: str
    hashes: list[str]
    right: list[float]
    sources: list[int]


class BenchmarkResult(BaseModel):
    """The result on pairs, or on prompts with several answers, of which some are right; the count of the other is 0.

    `accuracy`: share of pairs with chosen > rejected, ties of equal rewards being lost; of prompts whose best answer is
    a right one, where k answers that share the highest reward count 1/k each. With Wilson's interval; `chance` is what
    guessing would come to. `ties`: pairs of equal rewards, prompts with a shared highest one. `left_out`: prompts of
    which no answer is wrong.

    `sources`: the largest first, empty where no item names one; `more_sources` are not listed. `rewardbench` and
    `rewardbench2` are null where no source is one of their subsets; they are computed over all sources. Of a preference
    model: `flip_rate`, the share of comparisons in which the order of the two decides, and of pairs
    `calibration_error`. `items`: null in results of earlier versions, and in what the API gives.
    """

    pairs: int
    prompts: int = 0
    ties: int
    accuracy: Estimate
    chance: float = 0.5
    left_out: int = 0
    sources: list[SourceAccuracy] = []
    more_sources: int = 0
    rewardbench: RewardBenchSections | None = None
    rewardbench2: RewardBench2Domains | None = None
    flip_rate: float | None = None
    calibration_error: float | None = None
    items: BenchmarkItems | None = None


class FinishedBenchmark(BaseModel):
    """The result of a run, and the dataset that its pairs are from."""

    run_id: UUID
    dataset_id: UUID
    dataset: str
    ended_at: dt.datetime
    result: BenchmarkResult


class BenchmarkSide(BaseModel):
    """One of two models, and the run that benchmarked it."""

    model: str
    run_id: UUID


class PairedShare(BaseModel):
    """How far models `a` and `b` are right on the same `n` items, from 0 to 1.

    `name`: of the subset or section; null for items that name no subset, or one of those that are not listed.
    `difference`: a - b with its 95% interval. `only_a`, `only_b`: items on which one does better, null where subsets
    are weighed. `p_holm`: by Holm's correction over the subsets.
    """

    name: str | None
    n: int
    a: float
    b: float
    difference: Estimate
    only_a: int | None = None
    only_b: int | None = None
    p: float | None
    p_holm: float | None = None


class PairedBenchmark(BaseModel):
    """Two models on the same items of a benchmark, which the newest run of `a` found in `dataset`.

    `items`: all of the benchmark's, of which `every` compares at most 10,000. `subsets`: the largest first, empty where
    no item names one. `sections`: RewardBench's complete ones; `overall`: their mean, null while one is missing.
    """

    dataset: str
    dataset_id: UUID
    a: BenchmarkSide
    b: BenchmarkSide
    items: int
    every: PairedShare
    subsets: list[PairedShare]
    sections: list[PairedShare]
    overall: PairedShare | None
