"""Which variants successive halving dropped, at which rung, and why."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard.evaluation.sweeps.loader import SweepFacts
from steerboard.evaluation.sweeps.measured import measured, overlap
from steerboard_contracts.recipes.sweep import PlannedHalving
from steerboard_contracts.report.sweep import RungRow, VariantRow


def of_halving(row: VariantRow, facts: SweepFacts) -> VariantRow:
    """The row with its rungs. A variant that was dropped is `skipped`, or `failed` or `cancelled` where its last rung
    was."""
    planned = facts.planned.halving
    assert planned is not None
    place = row.number - 1
    for rung in planned.rungs:
        stage = rung.stages[place]
        halved = facts.stages.get(stage)
        if halved is None:
            continue
        if halved.dropped:
            row.dropped_after, row.reason = rung.number - 1, halved.reason
            if row.state == "succeeded":
                row.state = "skipped"
            break
        if halved.state in ("pending", "queued"):
            break
        figure = measured(halved.summary, planned.figure) if halved.state == "succeeded" else None
        interval = {} if figure is None else {"low": figure.low, "high": figure.high}
        value = figure.value if figure is not None else None
        row.rungs.append(RungRow(rung=rung.number, steps=rung.steps, stage=stage, figure=value, **interval))
    return row


def mark_noise(rows: Sequence[VariantRow], planned: PlannedHalving) -> None:
    """Whether each variant that was dropped is within noise of the best of the rung after which it was."""
    for row in rows:
        last = next((rung for rung in row.rungs if rung.rung == row.dropped_after), None)
        if last is None or last.figure is None:
            continue
        others = [rung for other in rows for rung in other.rungs if rung.rung == last.rung and rung.figure is not None]
        best = max(others, key=lambda rung: _ahead(rung, planned))
        row.dropped_within_noise = overlap(best, last)


def _ahead(rung: RungRow, planned: PlannedHalving) -> float:
    assert rung.figure is not None
    return rung.figure if planned.goal == "maximize" else -rung.figure


def halving_in_words(planned: PlannedHalving) -> str:
    rungs = planned.rungs
    extreme = "highest" if planned.goal == "maximize" else "lowest"
    trained = ", ".join(f"{planned.kept(rung.number - 1)} for {rung.steps:,} steps" for rung in rungs)
    shared = ", where variants that share the training count once" if planned.shared else ""
    return f"Successive halving by the {extreme} {planned.figure}: {trained}{shared}."
