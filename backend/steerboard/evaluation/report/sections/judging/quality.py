"""How far each judge's word counts: agreement with people, repeatability, cost and time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, JudgeFacts
from steerboard.evaluation.report.sources import Source, share
from steerboard.evaluation.report.verdict_tables import PAIR_STYLES
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.judges import JudgeQuality, JudgeReport, SourceKappa
from steerboard_statistics.agreement import item_agreement, kappa_interval


def add_quality(data: EvaluationData, reports: Sequence[JudgeReport], sources: Sequence[Source]) -> None:
    judges = {judge.name: judge for judge in data.judges}
    own = {source.label: source for source in sources if source.by == "judge"}
    for report in reports:
        judge, source = judges[report.judge], own[report.judge]
        paid = judge.cost.verdicts
        report.quality = JudgeQuality(
            people=kappas_with_people(source, sources, seed=data.seed) if report.valid else [],
            calibrations=list(judge.calibrations),
            repeatability=_repeatability(judge, seed=data.seed),
            cost=judge.cost.cost,
            uncertain_cost=judge.cost.uncertain,
            calibration_cost=judge.cost.calibrations,
            cost_per_verdict=judge.cost.cost / paid if judge.cost.cost is not None and paid else None,
            seconds_per_verdict=judge.cost.seconds / paid if judge.cost.seconds is not None and paid else None,
        )


def kappas_with_people(source: Source, sources: Sequence[Source], *, seed: int) -> list[SourceKappa]:
    """The kappas with every campaign and criterion that shares an item."""
    kappas = []
    for other in sources:
        if other.by != "human":
            continue
        kappa = kappa_interval(source.signs, other.signs, seed=seed)
        if kappa.n:
            agreement = item_agreement(source.signs, other.signs, seed=seed)
            kappas.append(SourceKappa(source=other.label, kappa=kappa, agreement=agreement))
    return kappas


def _repeatability(judge: JudgeFacts, *, seed: int) -> Estimate:
    """Share of the items asked twice with the same verdict: the same side of a pair, or the same score."""
    if judge.repeats is None:
        return Estimate(value=None, n=0)
    first, again = judge.repeats.first, judge.repeats.again
    if judge.style in PAIR_STYLES:
        first, again = np.sign(first - 0.5), np.sign(again - 0.5)
    return share(judge.repeats.row, (first == again).astype(np.float64), seed=seed)
