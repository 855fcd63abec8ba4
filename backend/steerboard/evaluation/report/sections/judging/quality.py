"""How far each judge's word counts: agreement with people, repeatability, cost and time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, JudgeFacts
from steerboard.evaluation.report.sources import Source, share
from steerboard.evaluation.report.verdict_tables import PAIR_STYLES
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.judges import Calibration, JudgeQuality, JudgeReport, SourceKappa
from steerboard_statistics.agreement import item_agreement, kappa_interval
from steerboard_statistics.validity import UNUSABLE_THRESHOLD, assess


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
            cost_per_verdict=judge.cost.cost / paid if judge.cost.cost is not None and paid else None,
            seconds_per_verdict=judge.cost.seconds / paid if judge.cost.seconds is not None and paid else None,
        )


def uncalibrated(judge: JudgeFacts) -> str | None:
    """Why a judge that has to be calibrated first is not valid: on every set that it was calibrated on, the interval of
    its accuracy has to begin at the threshold or above."""
    threshold = judge.settings.get("calibration_threshold")
    given = judge.settings.get("unparsed_threshold")
    allowed = UNUSABLE_THRESHOLD if given is None else float(given)
    if threshold is None:
        return None
    # The first of the largest of each set: neither a few lucky pairs nor another draw replaces it.
    of_set: dict[str, Calibration] = {}
    for one in judge.calibrations:
        if one.dataset not in of_set or one.pairs > of_set[one.dataset].pairs:
            of_set[one.dataset] = one
    if not of_set:
        return f"it has not been calibrated, and needs an accuracy of at least {threshold:.0%} on known pairs first"
    for name, one in of_set.items():
        found = one.accuracy
        lost = assess(found.n, {"without a usable verdict": one.pairs - found.n}, allowed, what=f"pairs of {name}")
        if lost.reason is not None:
            return lost.reason
        if found.value is None or found.low is None or found.low < threshold:
            low = "" if found.low is None else f" (95% interval from {found.low:.1%})"
            right = "no" if found.value is None else f"{found.value:.1%}"
            on = f"{found.n} known pairs of {name}"
            return f"accuracy on {on} is {right}{low}, and has to be at least {threshold:.0%}"
    return None


def kappas_with_people(source: Source, sources: Sequence[Source], *, seed: int) -> list[SourceKappa]:
    """With every campaign and criterion that shares an item."""
    found = []
    for other in sources:
        if other.by != "human":
            continue
        kappa = kappa_interval(source.signs, other.signs, seed=seed)
        if kappa.n:
            agreement = item_agreement(source.signs, other.signs, seed=seed)
            found.append(SourceKappa(source=other.label, kappa=kappa, agreement=agreement))
    return found


def _repeatability(judge: JudgeFacts, *, seed: int) -> Estimate:
    """Share of the items asked twice with the same verdict: the same side of a pair, or the same score."""
    if judge.repeats is None:
        return Estimate(value=None, n=0)
    first, again = judge.repeats.first, judge.repeats.again
    if judge.style in PAIR_STYLES:
        first, again = np.sign(first - 0.5), np.sign(again - 0.5)
    return share(judge.repeats.row, (first == again).astype(np.float64), seed=seed)
