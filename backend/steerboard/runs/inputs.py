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

# `after.0`, `after.1`, ...: runs that must have succeeded, and that give nothing to be read as an input.
AFTER = "after."
# `after.any.0`, ...: runs that must have ended, one way or another.
AFTER_ANY_END = "after.any."

# The model that a run is run for; further ones have the name of their role.
MAIN_MODEL = "model"
_GIVES = RunOutput.dataset_id.is_not(None) | RunOutput.model_id.is_not(None)


def resolve(session: Session, run: Run) -> dict[str, Dataset | Model]:
    """Every input of `run` by name. Raises `UnusableInput` while an upstream run has no output to give."""
    conditions = RunInput.run_id == run.id, ~RunInput.name.startswith(AFTER)
    rows = session.scalars(select(RunInput).where(*conditions).order_by(RunInput.name))
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
        **{
            dataset.id: dataset for dataset in session.scalars(select(Dataset).where(Dataset.id.in_(datasets - {None})))
        },
        **{model.id: model for model in session.scalars(select(Model).where(Model.id.in_(models - {None})))},
    }
    inputs: dict[uuid.UUID, dict[str, Dataset | Model]] = {run.id: {} for run in runs}
    projects = {run.id: run.project_id for run in runs}
    for (run_id, name), ref in refs.items():
        thing = things.get(ref.dataset_id or ref.model_id) if ref else None
        if thing is None or thing.project_id != projects[run_id]:
            inputs.pop(run_id, None)
        elif run_id in inputs:
            inputs[run_id][name] = thing
    return inputs


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
