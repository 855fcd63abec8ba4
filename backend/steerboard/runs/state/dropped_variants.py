"""What happens to the runs of a sweep's variants that successive halving drops.

A rung's run waits until every run of the rung before has ended. Then the best 1 / factor of those continue, by the
figure in their summaries: the first of equal ones, and none that failed, was cancelled or has no figure. The runs of
the other variants are skipped, and so is what needs their output; in a list they are left out. What was settled before
stays, so that a failed run which is resumed later takes no other variant's place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.inputs import AFTER
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.list_inputs import NothingLeft, copied, give
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Pipeline, Run, RunInput, RunLog
from steerboard_contracts.recipes.sweep import PlannedHalving, PlannedRung, PlannedSweep

DROPPED = "variant_dropped"
_BEGUN = ("queued", "running", "succeeded", "failed")


def planned_halving(pipeline: Pipeline) -> PlannedHalving | None:
    """Returns None where its recipe has no sweep, or one whose variants are all trained to the end."""
    given = pipeline.settings.get("sweep")
    return PlannedSweep.model_validate(given).halving if given is not None else None


def drop(session: Session, run: Run, upstream: Sequence[Run]) -> bool:
    """Called for a locked pending run whose upstream runs have ended as it needs them to. Returns whether it ended:
    skipped, or failed where no variant has the figure."""
    if run.pipeline_id is None or run.parent_id is not None:
        return False
    halving = planned_halving(session.get_one(Pipeline, run.pipeline_id))
    if halving is None:
        return False
    rung = halving.rung_of(run.name)
    if rung is not None and rung.number > 1:
        return _settle_rung(session, run, halving, rung)
    if any(source.state == "skipped" for source in upstream):
        return _follow(session, run, {source.id: source for source in upstream})
    return False


def figure_of(run: Run, figure: str) -> float | None:
    """The figure in the summary of a run that succeeded; None where there is none, or no finite one."""
    value = (run.summary or {}).get(figure) if run.state == "succeeded" else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _settle_rung(session: Session, run: Run, halving: PlannedHalving, rung: PlannedRung) -> bool:
    former = halving.rungs[rung.number - 2]
    runs = _by_name(session, run, {*former.stages, *rung.stages})
    figures = {name: figure_of(runs[name], halving.figure) for name in former.stages}
    last = former.stages[rung.stages.index(run.name)]
    ended = runs[last]
    if all(figure is None for figure in figures.values()):
        return _nothing_decides(session, run, halving, former, [runs[name] for name in former.stages])
    if run.name in _going_on(halving, former, rung, runs, figures):
        return False
    if ended.state == "skipped":
        reason = ended.reason
    elif figures[last] is None:
        state = f"{ended.name} {ended.state}" if ended.state != "cancelled" else f"{ended.name} was cancelled"
        why = f"{ended.name} has no {halving.figure}" if ended.state == "succeeded" else state
        reason = f"dropped after rung {former.number} ({former.steps:,} steps): {why}"
    else:
        reason = (
            f"dropped after rung {former.number} ({former.steps:,} steps): {halving.figure} {figures[last]:.4g} is not "
            f"among the {_best(halving, former)}"
        )
    move(session, run, "skipped", reason, "variant_dropped")
    return True


def _going_on(
    halving: PlannedHalving,
    former: PlannedRung,
    rung: PlannedRung,
    runs: Mapping[str, Run],
    figures: Mapping[str, float | None],
) -> set[str]:
    """Stages of `rung` whose variants continue: those settled so already, then the best others."""
    begun = {name for name in rung.stages if runs[name].state in _BEGUN}
    sign = -1 if halving.goal == "maximize" else 1
    ranked = sorted(
        (sign * figure, place)
        for place, name in enumerate(former.stages)
        if (figure := figures[name]) is not None and runs[rung.stages[place]].state == "pending"
    )
    waiting = list(dict.fromkeys(rung.stages[place] for _, place in ranked))
    return begun | set(waiting[: max(0, halving.kept(former.number) - len(begun))])


def _nothing_decides(
    session: Session, run: Run, halving: PlannedHalving, former: PlannedRung, runs: Sequence[Run]
) -> bool:
    """The run fails where training succeeded without the figure, which is a fault of the recipe; else it is
    skipped, since no variant of the rung before came to an end."""
    ended = next((run for run in runs if run.state == "succeeded"), None)
    if ended is None:
        inherited = next((run.reason for run in runs if run.state == "skipped"), None)
        reason = inherited or f"no variant of rung {former.number} was trained"
        move(session, run, "skipped", reason, "variant_dropped")
        return True
    known = [name for name in ended.summary or {} if name == "held_out_accuracy" or name.startswith("eval_")]
    hint = f"Its summary has {', '.join(known)}." if known else "No row of its data is held out."
    failure = Failure("no_figure", f"the summary of {ended.name} has no {halving.figure}, which decides", hint)
    run.error = failure.document()
    move(session, run, "failed", failure.detail, failure.code)
    return True


def _best(halving: PlannedHalving, former: PlannedRung) -> str:
    kept = halving.kept(former.number)
    extreme = "highest" if halving.goal == "maximize" else "lowest"
    return extreme if kept == 1 else f"{kept} {extreme}"


def _follow(session: Session, run: Run, upstream: Mapping[object, Run]) -> bool:
    """A run outside of the rungs: without what was dropped, or skipped where that is all that it needs."""
    rows = session.scalars(select(RunInput).where(RunInput.run_id == run.id).order_by(RunInput.name)).all()
    dropped = {
        row.name: upstream[row.upstream_run_id]
        for row in rows
        if row.upstream_run_id in upstream
        and upstream[row.upstream_run_id].reason_code == DROPPED
        and not row.name.startswith(AFTER)
    }
    if not dropped:
        return False
    needed = next((source for name, source in dropped.items() if "." not in name), None)
    try:
        if needed is not None:
            raise NothingLeft(f"it needs {needed.name}")
        give(session, run, rows, [copied(row) for row in rows if row.name not in dropped], set(dropped))
    except NothingLeft as error:
        reason = needed.reason if needed is not None else f"{next(iter(dropped.values())).reason}; {error}"
        move(session, run, "skipped", reason, "variant_dropped")
        return True
    for name, source in dropped.items():
        message = f"{name} is left out: {source.name} was {source.reason}"
        session.add(RunLog(run_id=run.id, attempt=run.attempt, level="info", message=message))
    session.flush()
    return False


def _by_name(session: Session, run: Run, names: set[str]) -> dict[str, Run]:
    conditions = (Run.pipeline_id == run.pipeline_id, Run.parent_id.is_(None), Run.name.in_(names))
    return {run.name: run for run in session.scalars(select(Run).where(*conditions))}
