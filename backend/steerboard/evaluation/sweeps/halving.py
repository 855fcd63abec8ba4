"""Which variants successive halving dropped, at which rung, and why."""

from __future__ import annotations

from steerboard.evaluation.sweeps.loader import SweepFacts
from steerboard.evaluation.sweeps.measured import measured
from steerboard_contracts.report.sweep import RungRow, VariantRow
from steerboard_contracts.sweep import PlannedHalving


def of_halving(row: VariantRow, facts: SweepFacts) -> VariantRow:
    """The row with its rungs. A variant that was dropped is `skipped`, or `failed` or `cancelled` where its last rung
    was."""
    planned = facts.planned.halving
    assert planned is not None
    place = row.number - 1
    for rung in planned.rungs:
        stage = rung.stages[place]
        found = facts.stages.get(stage)
        if found is None:
            continue
        if found.dropped:
            row.dropped_after, row.reason = rung.number - 1, found.reason
            if row.state == "succeeded":
                row.state = "skipped"
            break
        if found.state in ("pending", "queued"):
            break
        figure = measured(found.summary, planned.figure) if found.state == "succeeded" else None
        value = figure.value if figure is not None else None
        row.rungs.append(RungRow(rung=rung.number, steps=rung.steps, stage=stage, figure=value))
    return row


def halving_in_words(planned: PlannedHalving) -> str:
    rungs = planned.rungs
    extreme = "highest" if planned.goal == "maximize" else "lowest"
    numbers = [len(rungs[0].stages), *(planned.kept(rung.number) for rung in rungs[:-1])]
    trained = ", ".join(f"{number} for {rung.steps:,} steps" for number, rung in zip(numbers, rungs, strict=True))
    return f"Successive halving by the {extreme} {planned.figure}: {trained}."
