"""What the named inputs of a run are: datasets and models, and what they cost to make."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.registry.tables import Model
from steerboard.runs.errors import UnusableInput
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.run_kinds import kinds_that

# `after.0`, `after.1`, ...: runs that must have succeeded, and that give nothing to be read as an input.
AFTER = "after."
# `after.any.0`, ...: runs that must have ended, one way or another.
AFTER_ANY_END = "after.any."

# The model that a run is run for; further ones have the name of their role.
MAIN_MODEL = "model"
_GIVES = RunOutput.dataset_id.is_not(None) | RunOutput.model_id.is_not(None)


def resolve(session: Session, run: Run) -> dict[str, Dataset | Model]:
    """Every input of `run` by name. Raises `UnusableInput` while an upstream run has no output to give."""
    mine = RunInput.run_id == run.id, ~RunInput.name.startswith(AFTER)
    rows = session.scalars(select(RunInput).where(*mine).order_by(RunInput.name))
    return {row.name: _thing(session, run, row) for row in rows}


def resolve_all(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, dict[str, Dataset | Model]]:
    """`resolve` of many runs, in four queries. A run is left out while one of its inputs has nothing to give."""
    rows = session.scalars(
        select(RunInput)
        .where(RunInput.run_id.in_([run.id for run in runs]), ~RunInput.name.startswith(AFTER))
        .order_by(RunInput.name)
    ).all()
    upstream = {row.upstream_run_id for row in rows if row.upstream_run_id is not None}
    made: dict[tuple[uuid.UUID, str | None], RunOutput] = {}
    for output in session.scalars(
        select(RunOutput).where(RunOutput.run_id.in_(upstream), _GIVES).order_by(*main_first())
    ):
        made.setdefault((output.run_id, None), output)
        made[output.run_id, output.name] = output
    refs = {
        (row.run_id, row.name): made.get((row.upstream_run_id, row.upstream_output)) if row.upstream_run_id else row
        for row in rows
    }
    datasets = {ref.dataset_id for ref in refs.values() if ref}
    models = {ref.model_id for ref in refs.values() if ref}
    things: dict[uuid.UUID | None, Dataset | Model] = {
        **{one.id: one for one in session.scalars(select(Dataset).where(Dataset.id.in_(datasets - {None})))},
        **{one.id: one for one in session.scalars(select(Model).where(Model.id.in_(models - {None})))},
    }
    found: dict[uuid.UUID, dict[str, Dataset | Model]] = {run.id: {} for run in runs}
    projects = {run.id: run.project_id for run in runs}
    for (run_id, name), ref in refs.items():
        thing = things.get(ref.dataset_id or ref.model_id) if ref else None
        if thing is None or thing.project_id != projects[run_id]:
            found.pop(run_id, None)
        elif run_id in found:
            found[run_id][name] = thing
    return found


def _thing(session: Session, run: Run, row: RunInput) -> Dataset | Model:
    thing: Dataset | Model | None
    if row.upstream_run_id is not None:
        thing = output_of(session, row.upstream_run_id, row.upstream_output)
    elif row.dataset_id is not None:
        thing = session.get(Dataset, row.dataset_id)
    else:
        thing = session.get(Model, row.model_id)
    if thing is None or thing.project_id != run.project_id:
        raise UnusableInput(f"input {row.name} of run {run.name} leads to no dataset or model of this project")
    return thing


def main_first() -> tuple[ColumnElement[bool], ColumnElement[str]]:
    """The order of a run's outputs."""
    return RunOutput.name != MAIN_MODEL, RunOutput.name.expression


def output_of(session: Session, run_id: uuid.UUID, name: str | None = None) -> Dataset | Model | None:
    """The dataset or model that a succeeded run made, if it made one; or its output of this name."""
    which = [RunOutput.run_id == run_id, _GIVES, *([RunOutput.name == name] if name else [])]
    output = session.scalars(select(RunOutput).where(*which).order_by(*main_first())).first()
    if output is None:
        return None
    if output.dataset_id is not None:
        return session.get(Dataset, output.dataset_id)
    return session.get(Model, output.model_id)


def cost_of(session: Session, run: Run) -> float:
    """Device-seconds of a run; of a reused one what it cost when it ran."""
    if run.reused_from_id is None:
        return run.device_seconds
    source = session.get(Run, run.reused_from_id)
    return source.device_seconds if source else 0.0


def training_cost(session: Session, model: Model) -> tuple[float, float]:
    """(device-seconds of the run that made `model`, those of what it shares with others: the generation and scoring
    behind its data, and log-probs of frozen models that another run computed).

    A policy that started from another policy, as in the rounds of an iterative method, costs what that one did, too.
    """
    own = shared = 0.0
    seen: set[uuid.UUID] = set()
    latest: Model | None = model
    while latest is not None and (run := session.get(Run, latest.run_id) if latest.run_id else None):
        own += cost_of(session, run)
        shared += _shared_cost(session, run, seen) + log_prob_cost(session, latest)[1]
        start = resolve(session, run).get(MAIN_MODEL)
        latest = start if isinstance(start, Model) and start.role == "policy" else None
    return own, shared


def log_prob_cost(session: Session, model: Model) -> tuple[float, float]:
    """(device-seconds of the log-probs of frozen models that `model` was trained with, those of them that another run
    than its own spent). Each is computed once, and kept for all runs on the same data."""
    run = session.get(Run, model.run_id) if model.run_id else None
    summary = (run.summary if run else None) or {}
    return float(summary.get("log_prob_seconds") or 0.0), float(summary.get("log_prob_seconds_shared") or 0.0)


def _shared_cost(session: Session, run: Run, seen: set[uuid.UUID]) -> float:
    """Follows only datasets upstream: the model that generated is a cost of its own method. Adds to the runs `seen`."""
    waiting = _dataset_runs(session, run)
    total = 0.0
    while waiting:
        upstream = waiting.pop()
        if upstream.id in seen:
            continue
        seen.add(upstream.id)
        if upstream.kind in kinds_that(lambda kind: kind.shared_cost):
            total += cost_of(session, upstream)
        waiting.extend(_dataset_runs(session, upstream))
    return total


def _dataset_runs(session: Session, run: Run) -> list[Run]:
    makers = [
        session.get(Run, thing.run_id)
        for thing in resolve(session, run).values()
        if isinstance(thing, Dataset) and thing.run_id is not None
    ]
    return [maker for maker in makers if maker is not None]
