"""The report of a sweep from what was read: figures, the best, and what it cannot be distinguished from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steerboard.evaluation.sweeps.halving import halving_in_words, mark_noise, of_halving
from steerboard.evaluation.sweeps.loader import Rewards, SweepFacts
from steerboard.evaluation.sweeps.measured import ACCURACY, measured, overlap
from steerboard.runs.state.states import state_of
from steerboard_contracts.recipes.sweep import PlannedVariant
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import Comparison, PairRow
from steerboard_contracts.report.sweep import SweepReport, VariantRow
from steerboard_statistics.comparison import compare_scores
from steerboard_statistics.paired import MIN_TEST_ITEMS

FLATTERED = (
    "The best of several is chosen by the figure that it is shown with, which flatters it: to know how good it is, "
    "evaluate it on other prompts."
)


def sweep_report(facts: SweepFacts) -> SweepReport:
    """Takes up to seconds for many variants: every pair of them is compared."""
    planned = facts.planned
    rows = [_row(facts, variant) for variant in planned.variants]
    if planned.halving is not None:
        mark_noise(rows, planned.halving)
    report = SweepReport(
        pipeline=facts.pipeline,
        search=planned.search,
        seed=planned.seed,
        fields=planned.fields,
        metric=planned.metric,
        goal=planned.goal,
        figure=_figure(facts),
        variants=rows,
        halving=halving_in_words(planned.halving) if planned.halving else None,
        halving_figure=planned.halving.figure if planned.halving else None,
        verdict="",
    )
    if facts.rewards is not None:
        _compare(report, facts.rewards, facts.seed)
    elif planned.figure is not None:
        _from_training(report, facts, planned.figure)
    if report.best is not None:
        report.within_noise = [row.number for row in rows if row.within_noise]
        report.notes.append(FLATTERED)
    report.verdict = _verdict(report, facts)
    return report


def _row(facts: SweepFacts, variant: PlannedVariant) -> VariantRow:
    stages = [facts.stages[name] for name in variant.stages if name in facts.stages]
    states = [stage.state for stage in stages]
    row = VariantRow(
        number=variant.number,
        values=variant.values,
        stage=variant.judged,
        stages=variant.stages,
        state=state_of({state: states.count(state) for state in states}),
        device_seconds=sum(stage.device_seconds for stage in stages),
    )
    return of_halving(row, facts) if facts.planned.halving is not None else row


# -- by prompt ---------------------------------------------------------------------------------------------------------


def _compare(report: SweepReport, rewards: Rewards, seed: int) -> None:
    comparison = compare_scores(rewards.values, rewards.judged, seed=seed, pairwise_only=True)
    report.units = "z" if rewards.units == "z" else "raw"
    report.prompts = comparison.items
    report.compared_by = "prompts"
    figures = {row.entrant: row.mean for row in comparison.scores}
    for row in report.variants:
        estimate = figures.get(row.stage)
        row.figure = estimate if estimate is not None and estimate.value is not None else None
    best = _best(report)
    if best is None:
        return
    pairs = _against(best.stage, comparison)
    for row in report.variants:
        if row is best or row.figure is None:
            continue
        pair = pairs.get(row.stage)
        if pair is None:  # two variants of one and the same stage
            row.behind, row.within_noise = Estimate(value=0.0, n=row.figure.n), True
            continue
        row.behind, row.p_holm = _seen_from(best.stage, pair), pair.p_holm
        row.within_noise = not pair.significant


def _against(stage: str, comparison: Comparison) -> dict[str, PairRow]:
    return {(row.b if row.a == stage else row.a): row for row in comparison.pairs if stage in (row.a, row.b)}


def _seen_from(stage: str, pair: PairRow) -> Estimate | None:
    """How far `stage` is ahead."""
    difference = pair.difference
    if difference is None or pair.a == stage:
        return difference
    turned = {"value": difference.value, "low": difference.high, "high": difference.low}
    return Estimate(n=difference.n, **{name: None if value is None else -value for name, value in turned.items()})


def _best(report: SweepReport) -> VariantRow | None:
    """The first of those with the best figure."""
    sign = 1 if report.goal == "maximize" else -1
    seen = [row for row in report.variants if row.figure is not None and row.figure.value is not None]
    best = max(seen, key=lambda row: sign * _value(row), default=None)
    report.best = best.number if best else None
    return best


def _value(row: VariantRow) -> float:
    assert row.figure is not None
    assert row.figure.value is not None
    return row.figure.value


# -- as training measured it -------------------------------------------------------------------------------------------


def _from_training(report: SweepReport, facts: SweepFacts, figure: str) -> None:
    for row in report.variants:
        stage = facts.stages.get(row.stage)
        row.figure = measured(stage.summary, figure) if stage is not None and stage.state == "succeeded" else None
    best = _best(report)
    if best is None or best.figure is None or best.figure.low is None:
        return
    report.compared_by = "intervals"
    for row in report.variants:
        if row is not best and row.figure is not None:
            row.within_noise = overlap(best.figure, row.figure)


# -- in words ----------------------------------------------------------------------------------------------------------


def _verdict(report: SweepReport, facts: SweepFacts) -> str:
    best = next((row for row in report.variants if row.number == report.best), None)
    if best is None or best.figure is None:
        return _nothing_yet(report, facts)
    extreme = "highest" if report.goal == "maximize" else "lowest"
    unit = " z" if report.units == "z" else ""
    verdict = f"Variant {best.number} ({_settings(best.values)}) has the {extreme} {report.figure}"
    verdict = f"{verdict}, {best.figure.in_words(_short, unit)}"
    others = [row for row in report.variants if row is not best and row.figure is not None]
    missing = len(report.variants) - len(others) - 1
    dropped = sum(row.dropped_after is not None for row in report.variants)
    missing -= dropped
    tail = f" {missing} of {len(report.variants)} variants have no figure." if missing else ""
    if dropped:
        tail += f" {dropped} of {len(report.variants)} variants were dropped before the last rung"
        noise = sum(row.dropped_within_noise is True for row in report.variants)
        tail += f", {noise} of them within noise of the best of their rung." if noise else "."
    return f"{verdict}; {_told_apart(report, others)}.{tail}"


def _told_apart(report: SweepReport, others: Sequence[VariantRow]) -> str:
    if not others:
        return "there is no other to compare it with"
    if report.compared_by is None:
        return "whether others are within noise of it is unknown, since training keeps this figure without its items"
    noise = [row.number for row in others if row.within_noise]
    means = "differences by prompt" if report.compared_by == "prompts" else "intervals"
    if not noise:
        return f"by their {means}, it is better than every other"
    if report.prompts is not None and report.prompts < MIN_TEST_ITEMS:
        return f"{report.prompts} prompts are too few to tell it from others"
    if len(noise) == len(others):
        return f"by their {means}, every other is within noise of it"
    return f"by their {means}, {_numbers(noise)} within noise of it"


def _nothing_yet(report: SweepReport, facts: SweepFacts) -> str:
    if facts.waits_for:
        return f"No figures yet: {facts.waits_for}."
    ended = [row.stage for row in report.variants if row.state == "succeeded" and row.stage in facts.stages]
    if ended and facts.planned.figure is not None:
        summary = facts.stages[ended[0]].summary
        known = [name for name in summary if name == ACCURACY or name.startswith("eval_")]
        there = f"it has {', '.join(known)}" if known else "it has none: no row of its data is held out"
        return f"No figures: the summary of {ended[0]} has no {facts.planned.figure}; {there}."
    return "No figures yet: no variant has been trained."


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"variant {numbers[0]} is"
    return f"variants {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} are"


def _figure(facts: SweepFacts) -> str:
    if facts.planned.figure is not None:
        return facts.planned.metric
    return f"mean reward by {facts.rewards.judge}" if facts.rewards else "mean reward"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
