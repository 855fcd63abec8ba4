"""Reads the report that an evaluation's stage kept: of this version, or of an earlier one, which kept rows alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from steerboard_contracts.known_quality import KNOWN_QUALITY
from steerboard_contracts.report.claims import checks
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport, MethodsRow
from steerboard_contracts.report.flat import baseline_label, flat
from steerboard_contracts.report.pipeline import MethodRow, PipelineReport, ReportSummary
from steerboard_contracts.report.sections.costs import EntrantCost
from steerboard_contracts.report.sections.entrants import Contamination, EntrantRow
from steerboard_contracts.report.sections.fluency import Fluency, FluencyRow
from steerboard_contracts.report.sections.headline import Headline
from steerboard_contracts.report.sections.recipe import RecipeSection
from steerboard_contracts.watching.ledger import Ledger

_NOTHING = Estimate(value=None, n=0)
# What an earlier version did not keep is not made up.
_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


def read_report(document: Mapping[str, Any]) -> PipelineReport:
    """Raises `ValidationError` for a document of another form."""
    if "evaluation_id" in document:
        return flat(EvaluationReport.model_validate(document))
    former = PipelineReport.model_validate(document)
    baseline = baseline_label(former.methods)
    former = former.model_copy(update={"baseline": baseline})
    report = _report(former)
    words = report.headline.text if report.headline is not None else ""
    checks = report.recipe.checks if report.recipe is not None else []
    summary = ReportSummary(verdict=words, cost="", checks=checks) if words else None
    return former.model_copy(update={"summary": summary, "report": report})


def decision_of(document: Mapping[str, Any]) -> RoundDecision | None:
    """What was decided after the evaluation of a round. Nothing else of the document is read, whatever its form."""
    decision = (document.get("recipe") or document).get("decision")
    return None if decision is None else RoundDecision.model_validate(decision)


def _report(former: PipelineReport) -> EvaluationReport:
    """What the rows say, in the form of an evaluation's report. What they don't say is not there."""
    rows = former.methods
    names = [row.name or f"{row.entrant}{'' if row.score is None else f' at {row.score:g}'}" for row in rows]
    baseline = next((name for name, row in zip(names, rows, strict=True) if _is_baseline(row, former)), None)
    return EvaluationReport(
        evaluation=former.evaluation.name if former.evaluation is not None else "",
        evaluation_id=former.evaluation.id if former.evaluation is not None else None,
        version=0,
        computed_at=_EPOCH,
        seconds=0.0,
        prompts=former.prompts,
        turns=1,
        finished=True,
        unfinished=[],
        baseline=baseline,
        entrants=[_entrant(name, row) for name, row in zip(names, rows, strict=True)],
        methods=[_methods(name, row, former) for name, row in zip(names, rows, strict=True)],
        ranks=[],
        human=[],
        judges=[],
        rewards=[],
        agreement=[],
        contamination=Contamination(checked=[], prompts=former.prompts, exact=0, near=0, seen=[]),
        hacking=[],
        win_rate_differences=[],
        warnings=[],
        fluency=Fluency(entrants=[_fluency(name, row) for name, row in zip(names, rows, strict=True)]),
        headline=former.headline or _headline(former),
        costs=[cost for name, row in zip(names, rows, strict=True) if (cost := _cost(name, row)) is not None],
        recipe=RecipeSection(
            entrants=names,
            **former.model_dump(include=RecipeSection.model_fields.keys() - {"entrants", "checks"}),
            checks=checks(former),
        ),
    )


def _is_baseline(row: MethodRow, former: PipelineReport) -> bool:
    return former.baseline is not None and baseline_label([row]) == former.baseline


def _headline(former: PipelineReport) -> Headline | None:
    """Means and intervals alone are not a test, so without the evaluation's verdict there is no winner."""
    if not former.methods:
        return None
    where = f"; the evaluation {former.evaluation.name} does" if former.evaluation is not None else ""
    return Headline(text=f"An earlier version made this report, which does not say whether there is a winner{where}.")


def _entrant(name: str, row: MethodRow) -> EntrantRow:
    return EntrantRow(
        name=name,
        source="model",
        method=row.method,
        score=row.score,
        guidance=row.guidance,
        best_of=row.best_of,
        chosen_by=row.chosen_by,
        family=None,
        model=row.entrant,
        content_hash=None,
        responses=row.n,
        missing=0,
        length=_NOTHING,
        truncated=row.truncated,
    )


def _methods(name: str, row: MethodRow, former: PipelineReport) -> MethodsRow:
    main = former.reward_model.name or "reward model"
    independent = former.reward_model.independent_name or "independent reward model"
    means = {
        main: Estimate(value=row.reward_mean, low=row.reward_low, high=row.reward_high, n=row.n),
        independent: _estimate(row.independent_reward_mean, row.n),
        KNOWN_QUALITY: Estimate(value=row.quality_mean, low=row.quality_low, high=row.quality_high, n=row.n),
    }
    rates = {
        main: _estimate(row.win_rate_vs_baseline, row.n),
        independent: _estimate(row.independent_win_rate_vs_baseline, row.n),
    }
    judge = {former.judge or "judge": _estimate(row.judge_win_rate_vs_baseline, row.n)}
    return MethodsRow(
        entrant=name,
        method=row.method,
        score=row.score,
        length=_NOTHING,
        reward=_known(means),
        reward_win_rate=_known(rates),
        judge={},
        judge_win_rate=_known(judge),
        human={},
        human_win_rate={},
    )


def _estimate(value: float | None, n: int) -> Estimate:
    return Estimate(value=value, n=n)


def _known(estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {source: estimate for source, estimate in estimates.items() if estimate.value is not None}


def _fluency(name: str, row: MethodRow) -> FluencyRow:
    return FluencyRow(
        entrant=name,
        answers=row.n,
        perplexity=Estimate(value=row.perplexity, n=0),
        distinct_1=row.distinct_1,
        distinct_2=row.distinct_2,
        empty=row.empty,
        repeated=row.repeated,
        cut=row.truncated,
        tokens=row.length_mean,
    )


def _cost(name: str, row: MethodRow) -> EntrantCost | None:
    if row.total_device_seconds is None:
        return None
    return EntrantCost(
        entrant=name,
        own_device_seconds=row.own_device_seconds,
        ledger=Ledger(device_seconds=row.total_device_seconds),
        runs=1,
        shared=row.shared_runs,
        shared_device_seconds=sum(run.device_seconds for run in row.shared_runs),
    )
